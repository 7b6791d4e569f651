/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MC_PROTOCOL_H
#define MC_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* memcached's ASCII protocol, as far as get and set need it. */
#define MC_MOST_KEY_BYTES 250
#define MC_MOST_VALUE_BYTES 1000000

/* A request without its value is never longer. */
#define MC_COMMAND_BYTES (MC_MOST_KEY_BYTES + 64)

enum mc_reply { MC_INCOMPLETE, MC_STORED, MC_HIT, MC_MISS, MC_ERROR };

struct mc_parser {
	size_t skip; /* bytes of a value that are still to come */
	bool hit;    /* a value was seen, its END not yet */
};

/* Write one request to the buffer, which has room, and return its length. */
size_t mc_format_get(char *buffer, uint64_t key, uint64_t key_bytes);
size_t mc_format_set(char *buffer, uint64_t key, uint64_t key_bytes, uint64_t value_bytes);

/* Reads at most one reply from the bytes; says how many of them it used. */
enum mc_reply mc_parse(struct mc_parser *parser, const char *bytes, size_t count, size_t *used);

#endif
