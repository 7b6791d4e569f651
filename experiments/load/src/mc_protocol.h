/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MC_PROTOCOL_H
#define MC_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Protocols of servers that keep values by keys, as far as get and set need them. */
#define MC_MOST_KEY_BYTES 250
#define MC_MOST_VALUE_BYTES 1000000

/* A request without its value is never longer. */
#define MC_COMMAND_BYTES (MC_MOST_KEY_BYTES + 64)

enum mc_reply { MC_INCOMPLETE, MC_STORED, MC_HIT, MC_MISS, MC_ERROR };

struct mc_protocol;

/* Replies are lines, and values of a length that a line told; or messages that begin with theirs. */
struct mc_parser {
	const struct mc_protocol *protocol;
	size_t skip;         /* bytes of a value that are still to come */
	enum mc_reply after; /* what the reply is when they have come */
	unsigned int state;  /* the protocol's own; 0 between replies */
	size_t body;         /* of an answer whose headers are not complete yet */
	uint64_t expected;   /* the number of the request whose reply is next */
};

/* What a request asks for; a protocol takes of it what it knows. */
struct mc_request {
	uint64_t number;
	uint64_t key, key_bytes, value_bytes;
	uint64_t serial_us, helper_us; /* of work */
};

struct mc_protocol {
	const char *name;
	/* Reads at most one reply from the bytes; says how many of them it used. MC_ERROR with none used: this
	 * is not the protocol. */
	enum mc_reply (*parse)(struct mc_parser *parser, const char *bytes, size_t count, size_t *used);
	/* What a connection says first and is answered like a set; NULL: nothing. */
	size_t (*greeting)(char *buffer);
	/* Write one request to the buffer, which has room, and return its length. */
	size_t (*get)(char *buffer, const struct mc_request *request);
	size_t (*set)(char *buffer, const struct mc_request *request);
	/* Of mc_parse_lines: takes a line without its end; MC_INCOMPLETE: the reply goes on. */
	enum mc_reply (*line)(struct mc_parser *parser, const char *line, size_t length);
	/* UDP: a request and its reply are a datagram each. A connection has one on its way, or it would not be known
	 * which was lost. */
	bool by_datagrams;
	/* A request says what is to be computed for it. */
	bool has_work;
};

/* http and bare have no set: values are files that are there, or none. */
extern const struct mc_protocol mc_memcached, mc_redis, mc_http, mc_postgres, mc_bare;

bool mc_starts_with(const char *line, size_t length, const char *word);

/* The number that the line has behind its first `from` bytes, if it is a number of a value's bytes. */
bool mc_read_size(const char *line, size_t length, size_t from, int base, size_t *size);

/* `parse` where replies are lines. */
enum mc_reply mc_parse_lines(struct mc_parser *parser, const char *bytes, size_t count, size_t *used);

#endif
