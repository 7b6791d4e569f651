/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MC_CLIENT_H
#define MC_CLIENT_H

#include "cpu.h"
#include "mc_connection.h"
#include "run.h"

struct mc_options {
	const struct mc_protocol *protocol;
	struct run_options run;
	const char *host, *unix_path;
	uint64_t port, connections, keys, key_bytes, serial_us, helper_us;
	struct range value_bytes;
	double get_ratio, drain_seconds;
};

struct mc_counts {
	uint64_t gets, sets, hits, misses;
};

struct mc_client {
	struct mc_options options;
	struct run run;
	struct crew crew;
	struct mc_connection *connections;
	size_t largest_request;
	int epoll_fd;
	uint64_t issued, answered; /* requests of the current phase, warm-up included */
	uint64_t refused;
	struct mc_counts counts; /* of the measured part */
};

/* Connects all, or ends with one line. */
void mc_client_connect(struct mc_client *client);

/* Makes a connection report to other functions: the preload and the run each have their own. */
void mc_client_listen(struct mc_client *client, struct mc_listener listener);

/* A request by these options for this key, with a value of so many bytes. */
struct mc_request mc_client_request(const struct mc_options *options, uint64_t number, uint64_t key, uint64_t value_bytes);

/* The next connection from this index on that has room, or NULL. */
struct mc_connection *mc_client_find_room(struct mc_client *client, uint64_t from);

void mc_client_flush(struct mc_client *client);
size_t mc_client_alive(const struct mc_client *client);

/* Waits until a socket is ready, a signal came or the time is reached; then receives and sends. */
void mc_client_wait(struct mc_client *client, uint64_t until_ns);

/* Says on every connection what comes first there. */
void mc_greet(struct mc_client *client);

/* Sets every key once, as fast as the server takes them. */
void mc_preload(struct mc_client *client);

#endif
