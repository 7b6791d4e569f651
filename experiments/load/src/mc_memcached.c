/* SPDX-License-Identifier: Apache-2.0 */
/* memcached's ASCII protocol. */
#include "mc_protocol.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A value was seen, its END not yet. */
#define HIT 1

static size_t format_get(char *buffer, const struct mc_request *request)
{
	return (size_t)sprintf(buffer, "get %0*" PRIu64 "\r\n", (int)request->key_bytes, request->key);
}

static size_t format_set(char *buffer, const struct mc_request *request)
{
	size_t length = (size_t)sprintf(buffer, "set %0*" PRIu64 " 0 0 %" PRIu64 "\r\n",
					(int)request->key_bytes, request->key, request->value_bytes);

	memset(buffer + length, 'v', request->value_bytes);
	memcpy(buffer + length + request->value_bytes, "\r\n", 2);
	return length + request->value_bytes + 2;
}

/* VALUE <key> <flags> <bytes>: the size of the data block with its line end. */
static bool read_value_size(const char *line, size_t length, size_t *size)
{
	const char *last = memrchr(line, ' ', length);

	if (!last || !mc_read_size(line, length, (size_t)(last + 1 - line), 10, size))
		return false;
	*size += 2;
	return true;
}

static enum mc_reply take_line(struct mc_parser *parser, const char *line, size_t length)
{
	if (mc_starts_with(line, length, "VALUE ")) {
		parser->state = HIT;
		return read_value_size(line, length, &parser->skip) ? MC_INCOMPLETE : MC_ERROR;
	}
	if (length == 3 && mc_starts_with(line, length, "END")) {
		bool hit = parser->state == HIT;

		parser->state = 0;
		return hit ? MC_HIT : MC_MISS;
	}
	return length == 6 && mc_starts_with(line, length, "STORED") ? MC_STORED : MC_ERROR;
}

const struct mc_protocol mc_memcached = {
	.name = "memcached",
	.parse = mc_parse_lines,
	.get = format_get,
	.set = format_set,
	.line = take_line,
};
