/* SPDX-License-Identifier: Apache-2.0 */
#include "prey.h"

#include "crew.h"
#include "fail.h"
#include "knobs.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct place {
	pid_t *tids;
	int number;
};

static void doze(struct member *self)
{
	struct place *place = self->shared;

	if (place->number == PREY_THREADS - 1)
		real_time(1);
	place->tids[place->number] = self->tid;
	for (;;) {
		sleep_ns(20 * NS_PER_MS);
		burn_ns(20 * NS_PER_US);
	}
}

static void blink(struct member *self)
{
	struct place *place = self->shared;

	place->tids[place->number] = self->tid;
	sleep_ns(NS_PER_MS);
}

static void start_threads(struct member *members, struct place *places, pid_t *tids,
			  void (*run)(struct member *self))
{
	for (int i = 1; i < PREY_THREADS; i++) {
		places[i] = (struct place){.tids = tids, .number = i};
		members[i] = (struct member){.run = run, .shared = &places[i], .cpu = i % 2};
		crew_start(&members[i]);
	}
}

static void live_steadily(pid_t *tids)
{
	struct member members[PREY_THREADS];
	struct place places[PREY_THREADS];

	start_threads(members, places, tids, doze);
	for (;;)
		pause();
}

static void live_restlessly(pid_t *tids)
{
	struct member members[PREY_THREADS];
	struct place places[PREY_THREADS];

	for (;;) {
		start_threads(members, places, tids, blink);
		for (int i = 1; i < PREY_THREADS; i++)
			crew_join(&members[i]);
	}
}

static int open_file(const char *path)
{
	int file = open(path, O_RDWR | O_CLOEXEC);

	must(file);
	return file;
}

static struct prey start(void (*live)(pid_t *tids))
{
	size_t size = PREY_THREADS * sizeof(pid_t);
	struct prey prey = {.tids = mmap(NULL, size, PROT_READ | PROT_WRITE,
					 MAP_SHARED | MAP_ANONYMOUS, -1, 0)};
	char path[KNOBS_PATH];

	if (prey.tids == MAP_FAILED)
		fail("mmap");
	prey.pid = fork();
	must(prey.pid);
	if (prey.pid == 0)
		live(prey.tids);
	prey.tids[0] = prey.pid;
	while (__atomic_load_n(&prey.tids[PREY_THREADS - 1], __ATOMIC_ACQUIRE) == 0)
		sleep_ns(NS_PER_MS);
	knobs_group_path(path, prey.pid);
	prey.group = open_file(path);
	return prey;
}

struct prey prey_steady(void)
{
	struct prey prey = start(live_steadily);
	char path[KNOBS_PATH];

	for (int i = 0; i < PREY_THREADS; i++) {
		knobs_thread_path(path, prey.tids[i]);
		prey.threads[i] = open_file(path);
	}
	return prey;
}

struct prey prey_restless(void)
{
	return start(live_restlessly);
}

void prey_end(struct prey *prey)
{
	kill(prey->pid, SIGKILL);
	must(waitpid(prey->pid, NULL, 0));
}
