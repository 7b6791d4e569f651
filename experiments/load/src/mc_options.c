/* SPDX-License-Identifier: Apache-2.0 */
#include "mc_options.h"

#include "fail.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct mc_options defaults = {
	.run = RUN_DEFAULTS,
	.host = "127.0.0.1",
	.port = 11211,
	.connections = 8,
	.keys = 10000,
	.key_bytes = 30,
	.value_bytes = {200, 200},
	.get_ratio = 0.9,
	.serial_us = 100,
	.helper_us = 200,
	.drain_seconds = 5.0,
};

static void refuse_contents(const struct command_line *line, const char *protocol)
{
	static const char *const options[] = {"keys", "key-bytes", "value-bytes"};

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (cli_given(line, options[i]))
			fail_option(options[i], "must not be there: %s asks for work, of no key", protocol);
}

static void check(const struct command_line *line, const struct mc_options *o)
{
	char widest[24];
	int digits = snprintf(widest, sizeof(widest), "%" PRIu64, o->keys - 1);

	if (o->unix_path && (cli_given(line, "host") || cli_given(line, "port")))
		fail_option("unix", "cannot be combined with --host or --port");
	if (o->key_bytes < (uint64_t)digits)
		fail_option("key-bytes", "must be at least %d for %" PRIu64 " keys, got '%" PRIu64 "'",
			    digits, o->keys, o->key_bytes);
	if (!o->protocol->set && o->get_ratio < 1.0)
		fail_option("get-ratio", "must be 1: %s only gets, got '%g'", o->protocol->name,
			    o->get_ratio);
	if (!o->protocol->has_work && (cli_given(line, "serial-us") || cli_given(line, "helper-us")))
		fail_option(cli_given(line, "serial-us") ? "serial-us" : "helper-us",
			    "is of bare: %s does its own work", o->protocol->name);
	if (o->protocol->has_work)
		refuse_contents(line, o->protocol->name);
	if (o->protocol->by_datagrams && o->unix_path)
		fail_option("unix", "must not be there: %s asks by UDP", o->protocol->name);
}

struct command_line mc_parse_options(struct mc_options *o, const struct mc_protocol *protocol,
				     char **arguments)
{
	struct option_spec specs[] = {
		RUN_OPTIONS(&o->run),
		TEXT("host", &o->host, "of the server"),
		COUNT("port", &o->port, 1, 65535, "of the server"),
		TEXT("unix", &o->unix_path, "its socket, instead of host and port"),
		COUNT("connections", &o->connections, 1, 1024, "used in turn"),
		REAL("get-ratio", &o->get_ratio, 0.0, 1.0, "share of gets, the rest are sets"),
		COUNT("serial-us", &o->serial_us, 0, 10000000, "of work before the helpers', in bare alone"),
		COUNT("helper-us", &o->helper_us, 0, 10000000, "of work on each helper, in bare alone"),
		COUNT("keys", &o->keys, 1, 100000000, "uniform; all set before the run, but in http"),
		COUNT("key-bytes", &o->key_bytes, 1, MC_MOST_KEY_BYTES, "length of a key"),
		RANGE("value-bytes", &o->value_bytes, 1, MC_MOST_VALUE_BYTES,
		      "length of a value, N or LOW-HIGH (uniform)"),
		REAL("drain-seconds", &o->drain_seconds, 0.0, 3600.0,
		     "longest wait for answers after the schedule"),
	};
	static struct option_spec kept[sizeof(specs) / sizeof(specs[0])];
	struct command_line line = {
		.subcommand = protocol->name,
		.summary = "Sends Poisson requests to a server; latency counts from the schedule.",
		.options = kept,
		.count = sizeof(specs) / sizeof(specs[0]),
	};

	*o = defaults;
	o->protocol = protocol;
	if (!protocol->set)
		o->get_ratio = 1.0;
	memcpy(kept, specs, sizeof(specs)); /* the result is written after this call */
	cli_parse(&line, arguments);
	check(&line, o);
	return line;
}
