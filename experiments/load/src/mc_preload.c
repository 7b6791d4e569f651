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
	client->preload_errors += reply != MC_STORED;
}

static void queue_set(struct mc_client *client, struct mc_connection *connection, uint64_t key)
{
	const struct mc_options *o = &client->options;
	char *buffer = mc_connection_reserve(connection, client->largest_request);
	struct rng rng;

	rng_seed(&rng, o->run.seed, RNG_PRELOAD, key);
	mc_connection_queue(connection, key,
			    o->protocol->set(buffer, key, o->key_bytes,
					     rng_between(&rng, o->value_bytes.low,
							 o->value_bytes.high)));
}

void mc_preload(struct mc_client *client)
{
	const struct mc_options *o = &client->options;

	mc_client_listen(client, (struct mc_listener){ignore_sent, count_answer, client});
	while (client->answered < o->keys && !stop_requested()) {
		struct mc_connection *connection;

		while (client->issued < o->keys &&
		       (connection = mc_client_find_room(client, client->issued)))
			queue_set(client, connection, client->issued++);
		mc_client_flush(client);
		if (mc_client_alive(client) < o->connections)
			fail_run("%s closed a connection during the preload", o->protocol->name);
		mc_client_wait(client, clock_now_ns() + NS_PER_S);
	}
	if (client->preload_errors)
		fail_run("%s refused %" PRIu64 " of %" PRIu64 " keys of the preload",
			 o->protocol->name, client->preload_errors, o->keys);
}
