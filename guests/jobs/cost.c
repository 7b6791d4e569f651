/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the patch costs a load: while nobody has opened a dasec file since boot, after somebody has,
 * and with a controller that has set each thread's granularity and reads all counters every 80 ms.
 * Also runs on a kernel without the patch, as long as no file is opened.
 */
#include "crew.h"
#include "fail.h"
#include "jobs.h"
#include "knobs.h"
#include "loads.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCKS = 20, PIPE_TURNS = 4500, MESSAGING_TURNS = 30, THREADS = 64, TEXT = 1 << 15 };

/* The control period of the paper, section 5. */
static const int64_t period_ns = 80 * NS_PER_MS;

static pid_t controller = -1;

static void leave_alone(void)
{
}

/* That of the sysctl at 2 CPUs (get_update_sysctl_factor), so that who preempts whom stays. */
static void set_granularities(const char *path)
{
	static struct row rows[THREADS];
	static char text[TEXT];
	int count = knobs_read(path, rows, THREADS), length = 0;

	for (int i = 0; i < count; i++)
		length += sprintf(text + length, "%lld granularity_ns 2000000\n", rows[i].tid);
	errno = knobs_write(path, text, (size_t)length);
	if (errno)
		fail(path);
}

static void watch(const char *path)
{
	static char text[TEXT];
	int file = open(path, O_RDONLY | O_CLOEXEC);

	must(file);
	for (int64_t next_ns = now_ns() + period_ns / 2;; next_ns += period_ns) {
		sleep_until_ns(next_ns);
		must(pread(file, text, sizeof(text), 0));
	}
}

static void take_control(void)
{
	char path[KNOBS_PATH];

	knobs_group_path(path, getpid());
	set_granularities(path);
	controller = fork();
	must(controller);
	if (controller == 0)
		watch(path);
}

static void let_go(void)
{
	if (controller < 0)
		return;
	must(kill(controller, SIGKILL));
	must(waitpid(controller, NULL, 0));
	controller = -1;
}

static void measure_pipe(loads_ready *ready)
{
	for (int i = 0; i < BLOCKS; i++) {
		int64_t took_ns = load_pipe(PIPE_TURNS, ready);

		let_go();
		printf("cost load=pipe operations=%d took_ns=%lld\n", PIPE_TURNS,
		       (long long)took_ns);
	}
}

static void measure_messaging(loads_ready *ready)
{
	for (int i = 0; i < BLOCKS; i++) {
		int64_t took_ns = load_messaging(MESSAGING_TURNS, ready);

		let_go();
		printf("cost load=messaging operations=%d took_ns=%lld\n",
		       MESSAGING_TURNS * MESSAGING_SIDE * MESSAGING_SIDE, (long long)took_ns);
	}
}

/* From now on the hooks count, for all threads. */
static void turn_on(void)
{
	knobs_row(getpid());
}

void job_pipe_unused(void)
{
	measure_pipe(leave_alone);
}

void job_pipe_counted(void)
{
	turn_on();
	measure_pipe(leave_alone);
}

void job_pipe_controlled(void)
{
	measure_pipe(take_control);
}

void job_messaging_unused(void)
{
	measure_messaging(leave_alone);
}

void job_messaging_counted(void)
{
	turn_on();
	measure_messaging(leave_alone);
}

void job_messaging_controlled(void)
{
	measure_messaging(take_control);
}
