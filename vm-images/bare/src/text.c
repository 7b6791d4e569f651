/* SPDX-License-Identifier: Apache-2.0 */
#include "text.h"

bool text_line(struct text *rest, struct text *line)
{
	*line = (struct text){rest->at, 0};
	while (line->bytes < rest->bytes && line->at[line->bytes] != '\n')
		line->bytes++;
	if (line->bytes == rest->bytes)
		return false;
	*rest = (struct text){line->at + line->bytes + 1, rest->bytes - line->bytes - 1};
	if (line->bytes && line->at[line->bytes - 1] == '\r')
		line->bytes--;
	return true;
}

struct text text_word(struct text *line)
{
	struct text word;

	for (; line->bytes && *line->at == ' '; line->bytes--)
		line->at++;
	word = (struct text){line->at, 0};
	for (; line->bytes && *line->at != ' '; line->bytes--, word.bytes++)
		line->at++;
	return word;
}

bool text_is(struct text word, const char *name)
{
	for (; word.bytes && *name && *word.at == *name; word.bytes--, word.at++)
		name++;
	return !word.bytes && !*name;
}

bool text_number(struct text word, uint32_t *number)
{
	uint64_t value = 0;

	for (uint32_t i = 0; i < word.bytes; i++) {
		if (word.at[i] < '0' || word.at[i] > '9')
			return false;
		value = 10 * value + (uint64_t)(word.at[i] - '0');
		if (value > UINT32_MAX)
			return false;
	}
	*number = (uint32_t)value;
	return word.bytes;
}
