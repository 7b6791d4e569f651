/* SPDX-License-Identifier: Apache-2.0 */
#include "clock.h"
#include "fail.h"
#include "mc_client.h"
#include "mc_options.h"
#include "rng.h"
#include "stop.h"
#include "subcommands.h"

/* What a request is depends on seed and number only, so it is drawn again when its reply comes. */
static bool draw_is_get(const struct mc_client *client, uint64_t request, struct rng *rng)
{
	rng_seed(rng, client->options.run.seed, RNG_REQUESTS, request);
	return rng_unit(rng) <= client->options.get_ratio;
}

static void on_sent(void *owner, uint64_t request, uint64_t now_ns)
{
	struct mc_client *client = owner;
	struct run *run = &client->run;

	samples_begin(&run->samples, request, now_ns);
	run->late_sends += run_is_measured(run, request) &&
			   now_ns > run_scheduled_ns(run, request) + LATE_NS;
}

static void on_answer(void *owner, uint64_t request, enum mc_reply reply, uint64_t now_ns)
{
	struct mc_client *client = owner;
	struct rng rng;
	bool is_get = draw_is_get(client, request, &rng);
	bool failed = is_get ? reply != MC_HIT && reply != MC_MISS : reply != MC_STORED;

	client->answered++;
	if (!run_is_measured(&client->run, request))
		return;
	if (failed) {
		client->run.errors++;
		return;
	}
	samples_end(&client->run.samples, request, now_ns);
	client->counts.gets += is_get;
	client->counts.sets += !is_get;
	client->counts.hits += reply == MC_HIT;
	client->counts.misses += reply == MC_MISS;
}

static void queue_request(struct mc_client *client, struct mc_connection *connection, uint64_t number)
{
	const struct mc_options *o = &client->options;
	char *buffer = mc_connection_reserve(connection, client->largest_request);
	struct rng rng;
	bool is_get = draw_is_get(client, number, &rng);
	uint64_t key = rng_between(&rng, 0, o->keys - 1);
	uint64_t value_bytes = rng_between(&rng, o->value_bytes.low, o->value_bytes.high);
	struct mc_request request = mc_client_request(o, number, key, value_bytes);

	mc_connection_queue(connection, number,
			    is_get ? o->protocol->get(buffer, &request) : o->protocol->set(buffer, &request));
}

struct window {
	struct cpu_mark begin, end;
};

/*
 * PostgreSQL's processes end with their connections, and whoever counts CPU time from outside looks at all
 * workloads one after the other when the run ends.
 */
#define LINGER_NS (NS_PER_S / 2)

/*
 * Queues what is due and returns when to look again: at the next arrival or, while a due request
 * finds no room, not before a socket is ready. Its latency counts from the schedule all the same.
 */
static uint64_t issue_due(struct mc_client *client, struct window *window, uint64_t drain_end_ns)
{
	struct run *run = &client->run;
	uint64_t now_ns = clock_now_ns();
	uint64_t next_ns = drain_end_ns;

	while (client->issued < run->arrivals.count) {
		struct mc_connection *connection;

		if (run_scheduled_ns(run, client->issued) > now_ns) {
			next_ns = run_scheduled_ns(run, client->issued);
			break;
		}
		connection = mc_client_find_room(client, client->issued);
		if (!connection)
			break;
		if (client->issued == run->arrivals.first_measured)
			cpu_mark_take(&window->begin, &client->crew);
		queue_request(client, connection, client->issued++);
	}
	mc_client_flush(client);
	return next_ns;
}

static bool is_over(const struct mc_client *client, uint64_t drain_end_ns)
{
	return stop_requested() || client->answered == client->run.arrivals.count ||
	       !mc_client_alive(client) || clock_now_ns() >= drain_end_ns;
}

static uint64_t drain_ns(const struct mc_client *client)
{
	return (uint64_t)(client->options.drain_seconds * (double)NS_PER_S);
}

static void exchange(struct mc_client *client, struct window *window)
{
	struct run *run = &client->run;
	uint64_t drain_end_ns = run->nominal_end_ns + drain_ns(client);

	stop_wait_until(run->start_ns);
	while (!is_over(client, drain_end_ns))
		mc_client_wait(client, issue_due(client, window, drain_end_ns));
	if (mc_client_alive(client))
		stop_wait_until(run->nominal_end_ns);
	run->end_ns = clock_now_ns();
	cpu_mark_take(&window->end, &client->crew);
	if (!window->begin.at_ns)
		window->begin = window->end; /* it ended within the warm-up */
}

static void write_result(struct mc_client *client, const struct window *window)
{
	struct json json = run_open_result(&client->run);
	uint64_t lost = client->options.connections - mc_client_alive(client);

	cpu_write(&client->crew, &window->begin, &window->end, &json);
	json_open_object(&json, client->options.protocol->name);
	json_count(&json, "gets", client->counts.gets);
	json_count(&json, "sets", client->counts.sets);
	json_count(&json, "hits", client->counts.hits);
	json_count(&json, "misses", client->counts.misses);
	json_count(&json, "connections_lost", lost);
	json_count(&json, "unanswered", client->issued - client->answered);
	json_close_object(&json);
	run_close_result(&client->run, &json);
}

static int measure(const struct mc_protocol *protocol, char **arguments)
{
	static struct mc_client client;
	struct command_line line = mc_parse_options(&client.options, protocol, arguments);
	struct window window;

	run_prepare(&client.run, &client.options.run, &line);
	client.run.unanswered_ns = drain_ns(&client);
	stop_install_handlers();
	crew_init(&client.crew, 1);
	crew_adopt(&client.crew, "main");
	window = (struct window){cpu_mark_make(&client.crew), cpu_mark_make(&client.crew)};
	clock_precise_timers();
	mc_client_connect(&client);
	if (protocol->greeting)
		mc_greet(&client);
	if (protocol->set)
		mc_preload(&client);
	mc_client_listen(&client, (struct mc_listener){on_sent, on_answer, &client});
	run_announce(&client.run, &client.crew, 0);
	exchange(&client, &window);
	write_result(&client, &window);
	if (!mc_client_alive(&client)) {
		complain("%s closed all connections before the end of the run", protocol->name);
		return 1;
	}
	stop_wait_until(client.run.nominal_end_ns + LINGER_NS);
	return 0;
}

int memcached_main(char **arguments)
{
	return measure(&mc_memcached, arguments);
}

int redis_main(char **arguments)
{
	return measure(&mc_redis, arguments);
}

int http_main(char **arguments)
{
	return measure(&mc_http, arguments);
}

int postgres_main(char **arguments)
{
	return measure(&mc_postgres, arguments);
}

int bare_main(char **arguments)
{
	return measure(&mc_bare, arguments);
}
