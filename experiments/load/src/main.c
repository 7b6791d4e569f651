/* SPDX-License-Identifier: Apache-2.0 */
#include "output.h"
#include "subcommands.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	const char *summary;
	int (*main)(char **arguments);
} subcommands[] = {
	{"service", "a request-serving workload with helpers and background work", service_main},
	{"memcached", "an open-loop memcached client", memcached_main},
	{"redis", "an open-loop Redis client", redis_main},
	{"http", "an open-loop client of a web server", http_main},
	{"postgres", "an open-loop PostgreSQL client", postgres_main},
	{"bare", "an open-loop client of the guests of vm-images/bare", bare_main},
	{"threads", "many synthetic vCPU threads", threads_main},
	{"matrixmul", "batch work whose main thread coordinates its workers", matrixmul_main},
	{"wakeup", "wake-up latency beside spinning threads on one core", wakeup_main},
};

#define SUBCOMMANDS (sizeof(subcommands) / sizeof(subcommands[0]))

static void print_usage(void)
{
	puts("usage: dasec-load SUBCOMMAND [options]\n");
	for (size_t i = 0; i < SUBCOMMANDS; i++)
		printf("  %-10s %s\n", subcommands[i].name, subcommands[i].summary);
	puts("\nSUBCOMMAND --help lists its options; --version prints the version.");
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	if (!strcmp(name, "--help")) {
		print_usage();
		return 0;
	}
	if (!strcmp(name, "--version")) {
		puts("dasec-load " DASEC_LOAD_VERSION);
		return 0;
	}
	for (size_t i = 0; i < SUBCOMMANDS; i++)
		if (!strcmp(name, subcommands[i].name))
			return subcommands[i].main(argv + 2);
	fprintf(stderr, "dasec-load: '%s': must be one of service, memcached, redis, http, postgres, bare, threads, matrixmul, wakeup\n",
		name);
	return 2;
}
