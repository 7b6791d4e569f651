/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that can happen to a thread, at once, while its dasec files are read and written:
 * born, woken, moved between CPUs and cgroups, given other policies, exec'd, ended. What it leaves
 * in the kernel's log is the result.
 */
#include "chance.h"
#include "crew.h"
#include "fail.h"
#include "jobs.h"
#include "knobs.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLOTS = 32, PARENTS = 4, ROUNDS_OF_WAKING = 20, GROUPS = 3, SEED = 20260102 };

static const int64_t length_ns = 3LL * NS_PER_S, long_ns = 40LL * NS_PER_S;

/*
 * Of all processes of the stress; who reads an id from it may find its owner gone, which is wanted.
 * 
 */
struct arena {
	pid_t tids[SLOTS];
	bool stop;
	long long born, execs, reads, writes, refused, migrations, policies, cgroup_moves;
};

static struct arena *arena;
static struct chance chance;

#define count(what) __atomic_add_fetch(&arena->what, 1, __ATOMIC_RELAXED)

static pid_t somebody(void)
{
	return __atomic_load_n(&arena->tids[chance_below(&chance, SLOTS)], __ATOMIC_RELAXED);
}

static void be_found(int slot)
{
	__atomic_store_n(&arena->tids[slot % SLOTS], gettid(), __ATOMIC_RELAXED);
	count(born);
}

struct pair {
	struct gate gates[2];
	int slot;
};

/* Two siblings wake each other in turn. */
static void volley(struct pair *pair, int side)
{
	for (uint32_t i = 0; i < ROUNDS_OF_WAKING; i++) {
		if (side == 0)
			gate_open(&pair->gates[1]);
		gate_wait(&pair->gates[side], i);
		if (side == 1)
			gate_open(&pair->gates[0]);
	}
}

static void *second(void *argument)
{
	struct pair *pair = argument;

	be_found(pair->slot + 1);
	volley(pair, 1);
	return NULL;
}

static void short_life(int slot)
{
	struct pair pair = {.slot = slot};
	pthread_t thread;

	be_found(slot);
	if (pthread_create(&thread, NULL, second, &pair) != 0)
		_Exit(0);
	volley(&pair, 0);
	burn_ns(chance_below(&chance, 2000) * NS_PER_US);
	pthread_join(thread, NULL);
	if (chance_below(&chance, 2)) {
		count(execs);
		execl("/proc/self/exe", "guest-jobs", "nothing", NULL);
	}
	_Exit(0);
}

static void parent(int number)
{
	for (int i = 0; !arena->stop; i++) {
		pid_t child = fork();

		must(child);
		chance_next(&chance);
		if (child == 0)
			short_life(number * SLOTS / PARENTS + i % 3 * 2);
		/* Some end by themselves, some in the middle of it. */
		if (chance_below(&chance, 4) == 0) {
			sleep_ns(chance_below(&chance, 1000) * NS_PER_US);
			kill(child, SIGKILL);
		}
		must(waitpid(child, NULL, 0));
	}
}

static void reader(int number)
{
	char path[KNOBS_PATH];
	struct row rows[4];

	(void)number;
	while (!arena->stop) {
		if (chance_below(&chance, 2))
			knobs_group_path(path, somebody());
		else
			knobs_thread_path(path, somebody());
		knobs_read(path, rows, 4);
		count(reads);
		if (chance_below(&chance, 4) == 0)
			sleep_ns(200 * NS_PER_US);
	}
}

static void writer(int number)
{
	char path[KNOBS_PATH], text[4 * KNOBS_PATH];
	pid_t tid;

	(void)number;
	while (!arena->stop) {
		int length = 0;

		tid = somebody();
		knobs_group_path(path, tid);
		for (int i = 0; i < 2; i++)
			length += sprintf(text + length, "%d weight %u\n%d granularity_ns %u\n",
					  tid, 2 + chance_below(&chance, 4000), tid,
					  chance_below(&chance, 10 * NS_PER_MS));
		if (knobs_write(path, text, (size_t)length) == 0)
			count(writes);
		else
			count(refused);
		if (chance_below(&chance, 4) == 0)
			sleep_ns(200 * NS_PER_US);
	}
}

static void migrator(int number)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	(void)number;
	while (!arena->stop) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(chance_below(&chance, (unsigned)cpus), &set);
		if (sched_setaffinity(somebody(), sizeof(set), &set) == 0)
			count(migrations);
		sleep_ns(100 * NS_PER_US);
	}
}

static void politician(int number)
{
	static const int policies[] = {SCHED_OTHER, SCHED_BATCH, SCHED_IDLE, SCHED_FIFO, SCHED_RR};

	(void)number;
	while (!arena->stop) {
		int policy = policies[chance_below(&chance, 5)];
		struct sched_param param = {.sched_priority =
						    policy == SCHED_FIFO || policy == SCHED_RR};
		pid_t tid = somebody();

		if (sched_setscheduler(tid, policy, &param) == 0)
			count(policies);
		setpriority(PRIO_PROCESS, (id_t)tid, (int)chance_below(&chance, 40) - 20);
		sleep_ns(150 * NS_PER_US);
	}
}

static void tell(const char *path, long long number)
{
	char text[24];
	int length = snprintf(text, sizeof(text), "%lld", number),
	    file = open(path, O_WRONLY | O_CLOEXEC);

	if (file < 0)
		return;
	if (write(file, text, (size_t)length) > 0)
		count(cgroup_moves);
	close(file);
}

static void mover(int number)
{
	char folder[KNOBS_PATH], path[2 * KNOBS_PATH];

	(void)number;
	while (!arena->stop) {
		snprintf(folder, sizeof(folder), "/sys/fs/cgroup/stress-%u",
			 chance_below(&chance, GROUPS));
		mkdir(folder, 0755);
		snprintf(path, sizeof(path), "%s/cpu.weight", folder);
		tell(path, 1 + chance_below(&chance, 1000));
		snprintf(path, sizeof(path), "%s/cgroup.procs", folder);
		tell(path, somebody());
		if (chance_below(&chance, 3) == 0)
			tell("/sys/fs/cgroup/cgroup.procs", somebody());
		if (chance_below(&chance, 4) == 0)
			rmdir(folder);
		sleep_ns(200 * NS_PER_US);
	}
}

static void (*const roles[])(int number) = {parent, parent, parent,   parent,	  reader,
					    reader, writer, migrator, politician, mover};

static void stress(int64_t how_long_ns)
{
	enum { ROLES = sizeof(roles) / sizeof(roles[0]) };
	pid_t children[ROLES];

	arena = mmap(NULL, sizeof(*arena), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (arena == MAP_FAILED)
		fail("mmap");
	for (int i = 0; i < ROLES; i++) {
		chance.state = SEED + (uint64_t)i;
		children[i] = fork();
		must(children[i]);
		if (children[i] == 0) {
			roles[i](i);
			_Exit(0);
		}
	}
	/* Ahead of what the stress makes of priorities, so that it ends in time. */
	real_time(50);
	sleep_ns(how_long_ns);
	__atomic_store_n(&arena->stop, true, __ATOMIC_RELEASE);
	for (int i = 0; i < ROLES; i++)
		must(waitpid(children[i], NULL, 0));
	printf("stress born=%lld execs=%lld reads=%lld writes=%lld refused=%lld migrations=%lld "
	       "policies=%lld "
	       "cgroup_moves=%lld\n",
	       arena->born, arena->execs, arena->reads, arena->writes, arena->refused,
	       arena->migrations, arena->policies, arena->cgroup_moves);
}

void job_stress(void)
{
	stress(length_ns);
}

/* For kernels that check themselves, and are slow. */
void job_long_stress(void)
{
	stress(long_ns);
}
