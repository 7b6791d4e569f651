/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1 on connections that stay: files that are named by their keys. */
#include "mc_protocol.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Where in an answer the parser is. */
enum { STATUS, HEADERS, CHUNK, TRAILER };

/* Of the headers, in the state above these. */
#define OK 0x100U
#define CHUNKED 0x200U
#define PART 0xffU

static size_t format_get(char *buffer, const struct mc_request *request)
{
	return (size_t)sprintf(buffer,
			       "GET /%0*" PRIu64 " HTTP/1.1\r\nHost: s\r\nAccept-Encoding: gzip\r\n\r\n",
			       (int)request->key_bytes, request->key);
}

static bool is_header(const char *line, size_t length, const char *name)
{
	return length >= strlen(name) && !strncasecmp(line, name, strlen(name));
}

static enum mc_reply take_header(struct mc_parser *parser, const char *line, size_t length)
{
	static const char size[] = "Content-Length: ";

	if (is_header(line, length, size) && !mc_read_size(line, length, strlen(size), 10, &parser->body))
		return MC_ERROR;
	if (is_header(line, length, "Transfer-Encoding: chunked"))
		parser->state |= CHUNKED;
	return MC_INCOMPLETE;
}

static enum mc_reply end_of(struct mc_parser *parser)
{
	enum mc_reply reply = parser->state & OK ? MC_HIT : MC_ERROR;

	parser->state = STATUS;
	return reply;
}

static enum mc_reply end_headers(struct mc_parser *parser)
{
	if (parser->state & CHUNKED) {
		parser->state = (parser->state & ~PART) | CHUNK;
		return MC_INCOMPLETE;
	}
	parser->skip = parser->body;
	parser->after = end_of(parser);
	return MC_INCOMPLETE;
}

static enum mc_reply take_chunk(struct mc_parser *parser, const char *line, size_t length)
{
	if (!mc_read_size(line, length, 0, 16, &parser->skip))
		return MC_ERROR;
	if (parser->skip)
		parser->skip += 2;
	else
		parser->state = (parser->state & ~PART) | TRAILER;
	return MC_INCOMPLETE;
}

static enum mc_reply take_line(struct mc_parser *parser, const char *line, size_t length)
{
	switch (parser->state & PART) {
	case STATUS:
		if (!mc_starts_with(line, length, "HTTP/1.1 "))
			return MC_ERROR;
		parser->state = HEADERS | (mc_starts_with(line, length, "HTTP/1.1 200 ") ? OK : 0);
		parser->body = 0;
		return MC_INCOMPLETE;
	case HEADERS:
		return length ? take_header(parser, line, length) : end_headers(parser);
	case CHUNK:
		return take_chunk(parser, line, length);
	default:
		return length ? MC_INCOMPLETE : end_of(parser);
	}
}

const struct mc_protocol mc_http = {
	.name = "http",
	.parse = mc_parse_lines,
	.get = format_get,
	.line = take_line,
};
