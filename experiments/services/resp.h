/* SPDX-License-Identifier: Apache-2.0 */
/* Redis' protocol (RESP2), as far as a store of keys and values has to speak it. */
#ifndef RESP_H
#define RESP_H

#include <stdbool.h>
#include <stddef.h>

#define RESP_MOST_WORDS 3

struct resp_word {
	const char *at;
	size_t length;
};

struct resp_buffer {
	char *bytes;
	size_t used, size;
};

/* Room for so many more bytes; ends the process if there is none. */
void resp_reserve(struct resp_buffer *buffer, size_t more);

void resp_say(struct resp_buffer *out, const char *bytes, size_t length);

/* A value, as an answer. */
void resp_say_value(struct resp_buffer *out, const char *value, size_t length);

/* An error, of which the first line is said. */
void resp_say_error(struct resp_buffer *out, const char *error);

/*
 * The request at *at, which moves behind it: 1; 0 if it is not there as a whole; -1 if it is something
 * else.
 */
int resp_take(const char **at, const char *end, struct resp_word words[RESP_MOST_WORDS],
	      size_t *count);

/* Whether a word is this name, in capitals or not. */
bool resp_is(struct resp_word word, const char *name);

#endif
