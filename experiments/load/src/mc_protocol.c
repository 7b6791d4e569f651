/* SPDX-License-Identifier: Apache-2.0 */
#include "mc_protocol.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A reply line is short; more bytes without an end are not this protocol. */
#define LONGEST_LINE 2048

size_t mc_format_get(char *buffer, uint64_t key, uint64_t key_bytes)
{
	return (size_t)sprintf(buffer, "get %0*" PRIu64 "\r\n", (int)key_bytes, key);
}

size_t mc_format_set(char *buffer, uint64_t key, uint64_t key_bytes, uint64_t value_bytes)
{
	size_t length = (size_t)sprintf(buffer, "set %0*" PRIu64 " 0 0 %" PRIu64 "\r\n",
					(int)key_bytes, key, value_bytes);

	memset(buffer + length, 'v', value_bytes);
	memcpy(buffer + length + value_bytes, "\r\n", 2);
	return length + value_bytes + 2;
}

static bool starts_with(const char *line, size_t length, const char *word)
{
	return length >= strlen(word) && !memcmp(line, word, strlen(word));
}

/* VALUE <key> <flags> <bytes>: the size of the data block with its line end. */
static bool read_value_size(const char *line, size_t length, size_t *size)
{
	char copy[LONGEST_LINE + 1];
	unsigned long bytes;

	memcpy(copy, line, length);
	copy[length] = '\0';
	if (sscanf(copy, "VALUE %*s %*u %lu", &bytes) != 1 || bytes > MC_MOST_VALUE_BYTES)
		return false;
	*size = bytes + 2;
	return true;
}

static enum mc_reply parse_line(struct mc_parser *parser, const char *line, size_t length)
{
	if (starts_with(line, length, "VALUE ")) {
		parser->hit = true;
		return read_value_size(line, length, &parser->skip) ? MC_INCOMPLETE : MC_ERROR;
	}
	if (length == 3 && starts_with(line, length, "END")) {
		bool hit = parser->hit;

		parser->hit = false;
		return hit ? MC_HIT : MC_MISS;
	}
	return length == 6 && starts_with(line, length, "STORED") ? MC_STORED : MC_ERROR;
}

enum mc_reply mc_parse(struct mc_parser *parser, const char *bytes, size_t count, size_t *used)
{
	*used = 0;
	for (;;) {
		size_t skipped = parser->skip < count - *used ? parser->skip : count - *used;
		const char *line, *end;
		enum mc_reply reply;

		*used += skipped;
		parser->skip -= skipped;
		line = bytes + *used;
		end = parser->skip ? NULL : memmem(line, count - *used, "\r\n", 2);
		if (!end)
			return count - *used > LONGEST_LINE ? MC_ERROR : MC_INCOMPLETE;
		if (end - line > LONGEST_LINE)
			return MC_ERROR;
		*used += (size_t)(end - line) + 2;
		reply = parse_line(parser, line, (size_t)(end - line));
		if (reply != MC_INCOMPLETE)
			return reply;
	}
}
