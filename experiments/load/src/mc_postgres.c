/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PostgreSQL's protocol, version 3, with two prepared statements on the table `kept (key, value)`, which is there.
 * Messages are a letter, a length that counts itself, and a body; ReadyForQuery ends a reply.
 */
#include "mc_protocol.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define VERSION 0x30000U
#define SESSION "user\0postgres\0database\0postgres\0"
#define GET "get\0SELECT value FROM kept WHERE key = $1"
#define SET "set\0INSERT INTO kept VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = EXCLUDED.value"

/* What a reply had so far, in the parser's state. */
enum { ROW = 1U, INSERTED = 2U, REFUSED = 4U, PREPARED = 8U, AUTHENTICATED = 16U };

#define HEADER_BYTES 5
#define LONGEST_MESSAGE (MC_MOST_VALUE_BYTES + 4096U)

static char *put_u16(char *at, unsigned int value)
{
	uint16_t wire = htons((uint16_t)value);

	memcpy(at, &wire, sizeof(wire));
	return at + sizeof(wire);
}

static char *put_u32(char *at, size_t value)
{
	uint32_t wire = htonl((uint32_t)value);

	memcpy(at, &wire, sizeof(wire));
	return at + sizeof(wire);
}

static char *put_bytes(char *at, const char *bytes, size_t count)
{
	memcpy(at, bytes, count);
	return at + count;
}

/* The length, which does not count the letter before it, of a message that ends here. */
static char *end_message(char *length_at, char *end)
{
	put_u32(length_at, (size_t)(end - length_at));
	return end;
}

static char *put_prepare(char *at, const char *words, size_t count)
{
	char *end;

	*at++ = 'P';
	end = put_bytes(at + 4, words, count); /* with the 0 at its end */
	return end_message(at, put_u16(end, 0));
}

static char *put_sync(char *at)
{
	*at++ = 'S';
	return put_u32(at, 4);
}

static size_t format_greeting(char *buffer)
{
	char *at = put_u32(buffer + 4, VERSION);

	at = end_message(buffer, put_bytes(at, SESSION, sizeof(SESSION)));
	at = put_prepare(at, GET, sizeof(GET));
	at = put_prepare(at, SET, sizeof(SET));
	return (size_t)(put_sync(at) - buffer);
}

/* Bind up to the key, without its length. */
static char *open_bind(char *at, const char *statement, unsigned int parameters,
		       const struct mc_request *request)
{
	*at++ = '\0'; /* the portal */
	at = put_bytes(at, statement, strlen(statement) + 1);
	at = put_u16(at, 0); /* all of it is text */
	at = put_u16(at, parameters);
	at = put_u32(at, request->key_bytes);
	return at + sprintf(at, "%0*" PRIu64, (int)request->key_bytes, request->key);
}

static size_t close_request(char *buffer, char *at)
{
	at = end_message(buffer + 1, put_u16(at, 0));
	*at++ = 'E';
	at = put_u32(at, 9);
	*at++ = '\0';
	return (size_t)(put_sync(put_u32(at, 0)) - buffer); /* all rows */
}

static size_t format_get(char *buffer, const struct mc_request *request)
{
	*buffer = 'B';
	return close_request(buffer, open_bind(buffer + HEADER_BYTES, "get", 1, request));
}

static size_t format_set(char *buffer, const struct mc_request *request)
{
	char *at;

	*buffer = 'B';
	at = put_u32(open_bind(buffer + HEADER_BYTES, "set", 2, request), request->value_bytes);
	memset(at, 'v', request->value_bytes);
	return close_request(buffer, at + request->value_bytes);
}

static enum mc_reply end_of(struct mc_parser *parser)
{
	unsigned int had = parser->state;

	parser->state = 0;
	if (had & REFUSED)
		return MC_ERROR;
	if (had & (INSERTED | PREPARED))
		return MC_STORED;
	return had & ROW ? MC_HIT : MC_MISS;
}

/* A message by its letter and the first byte of its body. */
static enum mc_reply take_message(struct mc_parser *parser, char letter, char first)
{
	switch (letter) {
	case 'R':
		parser->state |= AUTHENTICATED;
		return MC_INCOMPLETE;
	case '1':
		parser->state |= PREPARED;
		return MC_INCOMPLETE;
	case 'D':
		parser->state |= ROW;
		return MC_INCOMPLETE;
	case 'C':
		parser->state |= first == 'I' ? INSERTED : 0;
		return MC_INCOMPLETE;
	case 'E':
		parser->state |= REFUSED;
		return MC_INCOMPLETE;
	case 'Z':
		/* Who has just been let in is answered once more: what it prepared at once. */
		if (parser->state & AUTHENTICATED) {
			parser->state &= ~AUTHENTICATED;
			return MC_INCOMPLETE;
		}
		return end_of(parser);
	default: /* the session's parameters and key, notices, what was bound */
		return MC_INCOMPLETE;
	}
}

static enum mc_reply parse(struct mc_parser *parser, const char *bytes, size_t count, size_t *used)
{
	*used = 0;
	for (;;) {
		size_t skipped = parser->skip < count - *used ? parser->skip : count - *used;
		const char *message;
		enum mc_reply reply;
		uint32_t length;
		bool has_body;

		*used += skipped;
		parser->skip -= skipped;
		if (parser->skip || count - *used < HEADER_BYTES)
			return MC_INCOMPLETE;
		message = bytes + *used;
		memcpy(&length, message + 1, sizeof(length));
		length = ntohl(length);
		has_body = length > 4;
		if (length < 4 || length > LONGEST_MESSAGE)
			return MC_ERROR;
		if (has_body && count - *used == HEADER_BYTES)
			return MC_INCOMPLETE;
		*used += HEADER_BYTES + has_body;
		parser->skip = length - 4 - has_body;
		reply = take_message(parser, message[0], has_body ? message[HEADER_BYTES] : '\0');
		if (reply != MC_INCOMPLETE)
			return reply;
	}
}

const struct mc_protocol mc_postgres = {
	.name = "postgres",
	.parse = parse,
	.greeting = format_greeting,
	.get = format_get,
	.set = format_set,
};
