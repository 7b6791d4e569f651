/* SPDX-License-Identifier: Apache-2.0
 *
 * The thesis' scripts B.1 to B.3 (Tables 6.1, 6.2, Figures 6.1, 6.2): two groups of equal weight end up on one
 * CPU, with one thread each that always computes. Each should have half.
 *
 *   fair:script=1
 */
#include "kit.h"

#include <signal.h>
#include <sys/wait.h>

#define SLICE "slice"
#define ASIDE "aside"
#define SETTLE_S 2
#define MEASURE_S 5

static const char *sub_of(const char *group)
{
	static char path[64];

	snprintf(path, sizeof(path), "%s/sub", group);
	return path;
}

/* As the scripts' run_sandbox: a process that waits, is moved below the group, and then computes. */
static pid_t sandbox(const char *group, int cpu, int weight, int id)
{
	int pipe_ends[2];
	pid_t pid;
	char go;

	if (pipe(pipe_ends))
		exit(1);
	pid = fork();
	if (!pid) {
		if (read(pipe_ends[0], &go, 1) != 1)
			_exit(1);
		hog(id);
	}
	usleep(10000);
	make_group(group);
	put(in_group(group, "cgroup.subtree_control"), "+cpuset +cpu");
	make_group(sub_of(group));
	put(in_group(sub_of(group), "cgroup.procs"), "%d", pid);
	put(in_group(sub_of(group), "cpuset.cpus"), "%d", cpu);
	put(in_group(sub_of(group), "cpu.weight"), "%d", weight);
	usleep(100000);
	if (write(pipe_ends[1], "g", 1) != 1)
		exit(1);
	close(pipe_ends[0]);
	close(pipe_ends[1]);
	return pid;
}

static void stay_on(int cpu)
{
	put(in_group(ASIDE, "cpuset.cpus"), "%d", cpu);
}

static void moved_into_a_new_group(pid_t *pids)
{
	stay_on(0);
	end(sandbox(SLICE "/one", 1, 1, 2));
	stay_on(2);
	end(sandbox(SLICE "/one", 1, 1, 2));
	pids[0] = sandbox(SLICE "/one", 1, 1, 0);
	stay_on(1);
	pids[1] = sandbox(SLICE "/two", 1, 10000, 1);
	stay_on(0);
}

static void moved_while_throttled(pid_t *pids)
{
	stay_on(0);
	usleep(100000);
	limit(SLICE, 1000, 4000, 0);
	pids[0] = sandbox(SLICE "/one", 0, 10000, 0);
	pids[1] = sandbox(SLICE "/two", 3, 1, 1);
	sleep(2);
	put(in_group(SLICE "/one/sub", "cpuset.cpus"), "3");
	limit(SLICE, 0, 4000, 0);
}

static void load_not_decayed(pid_t *pids)
{
	static const unsigned int waits_us[] = {1020000, 1050000, 1070000};

	stay_on(0);
	pids[0] = sandbox(SLICE "/one", 0, 100, 0);
	limit(SLICE "/one", 10000, 100000, 0);
	pids[1] = sandbox(SLICE "/two", 3, 100, 1);
	limit(SLICE "/two", 10000, 100000, 0);
	for (int cpu = 1; cpu <= 3; cpu++) {
		usleep(waits_us[cpu - 1]);
		put(in_group(SLICE "/one/sub", "cpuset.cpus"), "%d", cpu);
	}
	sleep(2);
	limit(SLICE "/one", 0, 100000, 0);
	limit(SLICE "/two", 0, 100000, 0);
}

void fair_shares(void)
{
	static void (*const scripts[])(pid_t *) = {moved_into_a_new_group, moved_while_throttled, load_not_decayed};
	static const char *const groups[] = {"one/sub", "one", "two/sub", "two"};
	uint64_t first, second;
	char path[64];
	pid_t pids[2];

	make_group(SLICE);
	make_group(ASIDE);
	put(in_group(SLICE, "cgroup.subtree_control"), "+cpuset +cpu");
	put(in_group(ASIDE, "cgroup.procs"), "%d", getpid());
	scripts[(int)number("script", 1) - 1](pids);
	sleep(SETTLE_S);
	first = shared->worker[0].done;
	second = shared->worker[1].done;
	sleep(MEASURE_S);
	first = shared->worker[0].done - first;
	second = shared->worker[1].done - second;
	say_run();
	say("first_percent", 100.0 * (double)first / (double)(first + second));
	say_end();
	end(pids[0]);
	end(pids[1]);
	put("/sys/fs/cgroup/cgroup.procs", "%d", getpid());
	for (int i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), SLICE "/%s", groups[i]);
		remove_group(path);
	}
	remove_group(SLICE);
	remove_group(ASIDE);
}
