/* SPDX-License-Identifier: Apache-2.0 */
#include "resp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { FIRST_SIZE = 32 * 1024, LONGEST_NUMBER = 9 };

void resp_reserve(struct resp_buffer *buffer, size_t more)
{
	size_t size = buffer->size ? buffer->size : FIRST_SIZE;

	while (size < buffer->used + more)
		size *= 2;
	if (size == buffer->size)
		return;
	buffer->bytes = realloc(buffer->bytes, size);
	if (!buffer->bytes) {
		fprintf(stderr, "dasec-rocksdb: no memory left\n");
		exit(1);
	}
	buffer->size = size;
}

void resp_say(struct resp_buffer *out, const char *bytes, size_t length)
{
	resp_reserve(out, length);
	memcpy(out->bytes + out->used, bytes, length);
	out->used += length;
}

void resp_say_value(struct resp_buffer *out, const char *value, size_t length)
{
	char head[32];

	resp_say(out, head, (size_t)sprintf(head, "$%zu\r\n", length));
	resp_say(out, value, length);
	resp_say(out, "\r\n", 2);
}

void resp_say_error(struct resp_buffer *out, const char *error)
{
	resp_say(out, "-ERR ", 5);
	resp_say(out, error, strcspn(error, "\r\n"));
	resp_say(out, "\r\n", 2);
}

/* A line of this sign and a number at *at, as resp_take() takes a request. */
static int take_number(const char **at, const char *end, char sign, size_t *number)
{
	const char *line_end = memchr(*at, '\n', (size_t)(end - *at));

	if (*at < end && **at != sign)
		return -1;
	if (!line_end)
		return end - *at > LONGEST_NUMBER + 3 ? -1 : 0;
	if (line_end - *at > LONGEST_NUMBER + 2 || (*at)[1] < '0' || (*at)[1] > '9')
		return -1;
	*number = strtoul(*at + 1, NULL, 10);
	*at = line_end + 1;
	return 1;
}

int resp_take(const char **at, const char *end, struct resp_word words[RESP_MOST_WORDS],
	      size_t *count)
{
	const char *next = *at;
	int found = take_number(&next, end, '*', count);

	if (found > 0 && (*count < 1 || *count > RESP_MOST_WORDS))
		return -1;
	for (size_t index = 0; found > 0 && index < *count; index++) {
		struct resp_word *word = &words[index];

		found = take_number(&next, end, '$', &word->length);
		if (found > 0 && (size_t)(end - next) < word->length + 2)
			return 0;
		word->at = next;
		next += found > 0 ? word->length + 2 : 0;
	}
	if (found > 0)
		*at = next;
	return found;
}

bool resp_is(struct resp_word word, const char *name)
{
	return word.length == strlen(name) && !strncasecmp(word.at, name, word.length);
}
