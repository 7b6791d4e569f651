/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MC_CONNECTION_H
#define MC_CONNECTION_H

#include "mc_protocol.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a connection tells its owner; now_ns is read once per batch. */
struct mc_listener {
	void (*sent)(void *owner, uint64_t request, uint64_t now_ns);
	void (*answered)(void *owner, uint64_t request, enum mc_reply reply, uint64_t now_ns);
	void *owner;
};

struct mc_pending {
	uint64_t request;
	uint64_t end_byte; /* of the stream: the request left when so much was sent */
};

/* A pipelined, non-blocking connection: replies come in the order of the requests. */
struct mc_connection {
	int fd; /* -1: lost */
	struct mc_listener listener;
	struct mc_parser parser;
	char *out, *in;
	size_t out_size, out_head, out_tail, in_fill;
	uint64_t queued_bytes, sent_bytes;
	struct mc_pending *pending;               /* a ring, the indices only grow */
	uint64_t oldest, first_unsent, next_free;
};

void mc_connection_init(struct mc_connection *connection, int fd, size_t largest_request,
			const struct mc_protocol *protocol);

/* Where the next request is to be formatted, or NULL while there is no room. */
char *mc_connection_reserve(struct mc_connection *connection, size_t largest_request);
void mc_connection_queue(struct mc_connection *connection, uint64_t request, size_t bytes);

/* Send and receive what is possible; a lost connection answers MC_ERROR to all its requests. */
void mc_connection_flush(struct mc_connection *connection);
void mc_connection_receive(struct mc_connection *connection);

#endif
