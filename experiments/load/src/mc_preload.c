/* SPDX-License-Identifier: Apache-2.0 */
#include "mc_client.h"

#include "clock.h"
#include "fail.h"
#include "rng.h"
#include "stop.h"

#include <inttypes.h>

static void ignore_sent(void *owner, uint64_t key, uint64_t now_ns)
{
	(void)owner;
	(void)key;
	(void)now_ns;
}

static void count_answer(void *owner, uint64_t key, enum mc_reply reply, uint64_t now_ns)
{
	struct mc_client *client = owner;

	(void)key;
	(void)now_ns;
	client->answered++;
	client->refused += reply != MC_STORED;
}

static void queue_greeting(struct mc_client *client, struct mc_connection *connection, uint64_t number)
{
	char *buffer = mc_connection_reserve(connection, client->largest_request);

	mc_connection_queue(connection, number, client->options.protocol->greeting(buffer));
}

static void queue_set(struct mc_client *client, struct mc_connection *connection, uint64_t key)
{
	const struct mc_options *o = &client->options;
	char *buffer = mc_connection_reserve(connection, client->largest_request);
	struct mc_request request;
	struct rng rng;

	rng_seed(&rng, o->run.seed, RNG_PRELOAD, key);
	request = mc_client_request(o, key, key, rng_between(&rng, o->value_bytes.low, o->value_bytes.high));
	mc_connection_queue(connection, key, o->protocol->set(buffer, &request));
}

typedef void queue(struct mc_client *client, struct mc_connection *connection, uint64_t number);

/* So many of these, to connections in turn; all of them are to be stored. */
static void store_all(struct mc_client *client, queue *queue_one, uint64_t count, const char *what)
{
	const struct mc_options *o = &client->options;

	mc_client_listen(client, (struct mc_listener){ignore_sent, count_answer, client});
	while (client->answered < count && !stop_requested()) {
		struct mc_connection *connection;

		while (client->issued < count &&
		       (connection = mc_client_find_room(client, client->issued)))
			queue_one(client, connection, client->issued++);
		mc_client_flush(client);
		if (mc_client_alive(client) < o->connections)
			fail_run("%s closed a connection during the %s", o->protocol->name, what);
		mc_client_wait(client, clock_now_ns() + NS_PER_S);
	}
	if (client->refused)
		fail_run("%s refused %" PRIu64 " of %" PRIu64 " in the %s", o->protocol->name,
			 client->refused, count, what);
}

void mc_greet(struct mc_client *client)
{
	store_all(client, queue_greeting, client->options.connections, "greeting");
}

void mc_preload(struct mc_client *client)
{
	store_all(client, queue_set, client->options.keys, "preload");
}
