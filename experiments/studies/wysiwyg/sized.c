/* An OpenMP program that starts as many threads as it sees CPUs, under a limit of CPU time that is not for so
 * many: figure 1 of WYSIWYG (Bacou et al., SCC 2019), without STREAM's memory. The first process of a guest:
 * it makes the group with the limit, runs the program in each set-up in turn, and says how long each took.
 *
 *     sized CPUS ROUNDS LOOPS
 *
 * The limit is CPUS - 2.5 CPUs; so 3.5 of six, as in the paper. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GROUP "/sys/fs/cgroup/sized"
#define PERIOD_US 100000
#define OTHERS_US (PERIOD_US * 5 / 2) /* of a period: 2.5 CPUs are not for it */

/* Iterations of a loop, shared by all threads: 64 parts, so that four and six threads can both share them well. */
#define PARTS 64
#define PART 2000

enum setup { QUOTA, MANUAL, CPUSET, SETUPS };
static const char *const names[] = { "quota", "quota and so many threads", "cpuset and quota" };

static void write_to(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) {
		perror(file);
		exit(1);
	}
	close(fd);
}

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* What STREAM is to its threads: loops that all of them share, and a barrier after each. */
static void compute(int loops)
{
	for (int loop = 0; loop < loops; loop++) {
#pragma omp parallel for schedule(static)
		for (int part = 0; part < PARTS; part++)
			for (volatile int step = 0; step < PART; step++)
				;
	}
}

static int run(enum setup setup, int cpus, int seen, int loops)
{
	cpu_set_t own;
	char pid[16];

	CPU_ZERO(&own);
	for (int cpu = 0; cpu < (setup == CPUSET ? seen : cpus); cpu++)
		CPU_SET(cpu, &own);
	snprintf(pid, sizeof(pid), "%d", getpid());
	write_to(GROUP "/cgroup.procs", pid);
	if (sched_setaffinity(0, sizeof(own), &own))
		return 1;
	omp_set_num_threads(setup == QUOTA ? cpus : seen);
	compute(loops);
	return 0;
}

int main(int argc, char **argv)
{
	int cpus = argc > 3 ? atoi(argv[1]) : 0;
	int rounds = argc > 3 ? atoi(argv[2]) : 0;
	int loops = argc > 3 ? atoi(argv[3]) : 0;
	int limit_us = cpus * PERIOD_US - OTHERS_US;
	char limit[32];

	if (cpus < 3 || rounds < 1 || loops < 1)
		return 2;
	mkdir(GROUP, 0755);
	write_to("/sys/fs/cgroup/cgroup.subtree_control", "+cpu");
	snprintf(limit, sizeof(limit), "%d %d", limit_us, PERIOD_US);
	write_to(GROUP "/cpu.max", limit);
	for (int round = 0; round < rounds; round++)
		for (int turn = 0; turn < SETUPS; turn++) {
			enum setup setup = (turn + round) % SETUPS;
			long long began_ns;
			int status;
			pid_t child;

			/* Somewhere else in the limit's period each time. */
			usleep(10000 + 7919 * (round * SETUPS + turn) % PERIOD_US);
			began_ns = now_ns();
			child = fork();
			if (child == 0)
				_exit(run(setup, cpus, (limit_us + PERIOD_US - 1) / PERIOD_US, loops));
			waitpid(child, &status, 0);
			if (status)
				return 1;
			printf("RUN:{\"setup\": \"%s\", \"took_ms\": %.3f}\n", names[setup], (now_ns() - began_ns) / 1e6);
			fflush(stdout);
		}
	return 0;
}
