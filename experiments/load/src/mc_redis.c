/* SPDX-License-Identifier: Apache-2.0 */
/* Redis' protocol, RESP2. */
#include "mc_protocol.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static size_t format_get(char *buffer, const struct mc_request *request)
{
	return (size_t)sprintf(buffer, "*2\r\n$3\r\nGET\r\n$%" PRIu64 "\r\n%0*" PRIu64 "\r\n",
			       request->key_bytes, (int)request->key_bytes, request->key);
}

static size_t format_set(char *buffer, const struct mc_request *request)
{
	size_t length = (size_t)sprintf(
		buffer, "*3\r\n$3\r\nSET\r\n$%" PRIu64 "\r\n%0*" PRIu64 "\r\n$%" PRIu64 "\r\n",
		request->key_bytes, (int)request->key_bytes, request->key, request->value_bytes);

	memset(buffer + length, 'v', request->value_bytes);
	memcpy(buffer + length + request->value_bytes, "\r\n", 2);
	return length + request->value_bytes + 2;
}

static enum mc_reply take_line(struct mc_parser *parser, const char *line, size_t length)
{
	if (length == 3 && mc_starts_with(line, length, "$-1"))
		return MC_MISS;
	if (mc_starts_with(line, length, "$")) {
		if (!mc_read_size(line, length, 1, 10, &parser->skip))
			return MC_ERROR;
		parser->skip += 2;
		parser->after = MC_HIT;
		return MC_INCOMPLETE;
	}
	return length == 3 && mc_starts_with(line, length, "+OK") ? MC_STORED : MC_ERROR;
}

const struct mc_protocol mc_redis = {
	.name = "redis",
	.parse = mc_parse_lines,
	.get = format_get,
	.set = format_set,
	.line = take_line,
};
