/* SPDX-License-Identifier: Apache-2.0 */
#include "mc_protocol.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* A reply line is short; more bytes without an end are not this protocol. */
#define LONGEST_LINE 2048

bool mc_starts_with(const char *line, size_t length, const char *word)
{
	return length >= strlen(word) && !memcmp(line, word, strlen(word));
}

bool mc_read_size(const char *line, size_t length, size_t from, int base, size_t *size)
{
	char copy[LONGEST_LINE + 1], *end;

	if (from >= length || length > LONGEST_LINE || !isxdigit((unsigned char)line[from]))
		return false;
	memcpy(copy, line, length);
	copy[length] = '\0';
	*size = strtoul(copy + from, &end, base);
	return end != copy + from && *size <= MC_MOST_VALUE_BYTES;
}

enum mc_reply mc_parse_lines(struct mc_parser *parser, const char *bytes, size_t count, size_t *used)
{
	*used = 0;
	for (;;) {
		size_t skipped = parser->skip < count - *used ? parser->skip : count - *used;
		enum mc_reply reply = MC_INCOMPLETE;
		const char *line, *end;

		*used += skipped;
		parser->skip -= skipped;
		if (parser->skip)
			return MC_INCOMPLETE;
		if (parser->after) {
			reply = parser->after;
			parser->after = MC_INCOMPLETE;
			return reply;
		}
		line = bytes + *used;
		end = memmem(line, count - *used, "\r\n", 2);
		if (!end)
			return count - *used > LONGEST_LINE ? MC_ERROR : MC_INCOMPLETE;
		if (end - line > LONGEST_LINE)
			return MC_ERROR;
		*used += (size_t)(end - line) + 2;
		reply = parser->protocol->line(parser, line, (size_t)(end - line));
		if (reply != MC_INCOMPLETE)
			return reply;
	}
}
