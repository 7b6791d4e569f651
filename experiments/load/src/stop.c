/* SPDX-License-Identifier: Apache-2.0 */
#include "stop.h"

#include "clock.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_uint stopped;
static atomic_bool interrupted;
static atomic_int notified_fd = -1;

bool stop_requested(void)
{
	return atomic_load_explicit(&stopped, memory_order_relaxed) != 0;
}

bool stop_interrupted(void)
{
	return atomic_load(&interrupted);
}

void stop_all(void)
{
	atomic_store(&stopped, 1);
	syscall(SYS_futex, &stopped, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void stop_notify(int eventfd)
{
	atomic_store(&notified_fd, eventfd);
}

void stop_interrupt(void)
{
	atomic_store(&interrupted, true);
	stop_all();
}

static void on_signal(int number)
{
	int saved_errno = errno;
	int fd = atomic_load(&notified_fd);
	uint64_t one = 1;

	(void)number;
	stop_interrupt();
	if (fd >= 0) {
		/* The only possible failure, a full eventfd, has woken its reader already. */
		ssize_t written = write(fd, &one, sizeof(one));

		(void)written;
	}
	errno = saved_errno;
}

void stop_install_handlers(void)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

	sigemptyset(&action.sa_mask);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
}

bool stop_wait_until(uint64_t deadline_ns)
{
	struct timespec deadline = clock_timespec(deadline_ns);

	/*
	 * A timed futex wait on the stop word instead of clock_nanosleep: the same high-resolution
	 * timer and the same wake-up from its interrupt, but a signal that comes between the check
	 * and the sleep cannot be lost, because the kernel compares the word again.
	 */
	while (!stop_requested()) {
		if (clock_now_ns() >= deadline_ns)
			return true;
		syscall(SYS_futex, &stopped, FUTEX_WAIT_BITSET_PRIVATE, 0, &deadline, NULL,
			FUTEX_BITSET_MATCH_ANY);
	}
	return false;
}
