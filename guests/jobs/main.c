/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs.h"

#include <stdio.h>
#include <string.h>

/* What an exec under stress runs. */
static void nothing(void)
{
}

static const struct {
	const char *name;
	void (*run)(void);
} jobs[] = {
	{"granularity", job_granularity},
	{"shares", job_shares},
	{"late", job_late},
	{"wakes", job_wakes},
	{"states", job_states},
	{"lifecycle", job_lifecycle},
	{"permissions", job_permissions},
	{"refusals", job_refusals},
	{"fuzz", job_fuzz},
	{"stress", job_stress},
	{"long-stress", job_long_stress},
	{"race", job_race},
	{"pipe-unused", job_pipe_unused},
	{"pipe-counted", job_pipe_counted},
	{"pipe-controlled", job_pipe_controlled},
	{"messaging-unused", job_messaging_unused},
	{"messaging-counted", job_messaging_counted},
	{"messaging-controlled", job_messaging_controlled},
	{"after-exec", lifecycle_after_exec},
	{"nothing", nothing},
};

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; argc == 2 && i < sizeof(jobs) / sizeof(jobs[0]); i++) {
		if (strcmp(argv[1], jobs[i].name) == 0) {
			jobs[i].run();
			return 0;
		}
	}
	fprintf(stderr, "usage: guest-jobs JOB: the jobs are in main.c\n");
	return 2;
}
