/* SPDX-License-Identifier: Apache-2.0 */
#include "feeder.h"

#include "clock.h"
#include "fail.h"
#include "stop.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* As stop_wait_until(), but every answer wakes it, as a signal does. */
static bool wait_among_answers(int answers_fd, uint64_t deadline_ns)
{
	struct pollfd answers = {.fd = answers_fd, .events = POLLIN};
	uint64_t now_ns, count;

	while (!stop_requested()) {
		now_ns = clock_now_ns();
		if (now_ns >= deadline_ns)
			return true;
		struct timespec left = clock_timespec(deadline_ns - now_ns);

		if (ppoll(&answers, 1, &left, NULL) > 0 &&
		    read(answers_fd, &count, sizeof(count)) != sizeof(count))
			fail_run("the feeder cannot read an answer: %s", strerror(errno));
	}
	return false;
}

/* Delivers one request; true when it left late. */
static bool deliver(const struct run *run, const struct feeder *feeder, size_t request, uint64_t start_ns)
{
	uint64_t scheduled_ns = start_ns + run->arrivals.offsets_ns[request];
	uint64_t one = 1;

	if (feeder->answers_fd >= 0 ? !wait_among_answers(feeder->answers_fd, scheduled_ns)
				    : !stop_wait_until(scheduled_ns))
		return false;
	if (write(feeder->requests_fd, &one, sizeof(one)) < 0)
		fail_run("the feeder cannot deliver a request: %s", strerror(errno));
	return run_is_measured(run, request) && clock_now_ns() > scheduled_ns + LATE_NS;
}

_Noreturn static void run_feeder(const struct run *run, const struct feeder *feeder, int control_fd)
{
	uint64_t start_ns, late_sends = 0;

	prctl(PR_SET_NAME, "feeder");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	stop_notify(feeder->answers_fd);
	clock_precise_timers();
	if (read(control_fd, &start_ns, sizeof(start_ns)) != sizeof(start_ns))
		_exit(1); /* the workload is gone */
	for (size_t i = 0; i < run->arrivals.count && !stop_requested(); i++)
		late_sends += deliver(run, feeder, i, start_ns);
	_exit(write(control_fd, &late_sends, sizeof(late_sends)) == sizeof(late_sends) ? 0 : 1);
}

struct feeder feeder_fork(const struct run *run, bool answers)
{
	struct feeder feeder = {.requests_fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC),
				.answers_fd = answers ? eventfd(0, EFD_CLOEXEC) : -1};
	int ends[2];

	if (feeder.requests_fd < 0 || (answers && feeder.answers_fd < 0) ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		fail_run("cannot connect the feeder: %s", strerror(errno));
	feeder.pid = fork();
	if (feeder.pid < 0)
		fail_run("cannot fork the feeder: %s", strerror(errno));
	if (feeder.pid == 0) {
		close(ends[0]);
		run_feeder(run, &feeder, ends[1]);
	}
	close(ends[1]);
	feeder.control_fd = ends[0];
	stop_notify(feeder.requests_fd);
	return feeder;
}

void feeder_start(struct feeder *feeder, uint64_t start_ns)
{
	if (send(feeder->control_fd, &start_ns, sizeof(start_ns), MSG_NOSIGNAL) == sizeof(start_ns))
		return;
	if (errno == EPIPE)
		fail_run("the feeder ended before its schedule");
	fail_run("cannot start the feeder: %s", strerror(errno));
}

/*
 * At its regular end the feeder has delivered everything first. If it has reported without, it got
 * the signal for the whole process group before this process did.
 */
static void handle_early_end(const struct feeder *feeder)
{
	uint64_t late_sends;

	if (recv(feeder->control_fd, &late_sends, sizeof(late_sends), MSG_PEEK) !=
	    sizeof(late_sends))
		fail_run("the feeder ended before its schedule");
	stop_interrupt();
}

bool feeder_await(struct feeder *feeder)
{
	struct pollfd ready[] = {{.fd = feeder->requests_fd, .events = POLLIN},
				 {.fd = feeder->control_fd, .events = POLLIN}};
	uint64_t token;

	while (poll(ready, 2, -1) < 0)
		if (errno != EINTR)
			fail_run("cannot wait for the feeder: %s", strerror(errno));
	if (!(ready[0].revents & POLLIN)) {
		handle_early_end(feeder);
		return false;
	}
	if (read(feeder->requests_fd, &token, sizeof(token)) != sizeof(token))
		fail_run("cannot read from the feeder: %s", strerror(errno));
	return !stop_requested();
}

void feeder_answer(const struct feeder *feeder)
{
	uint64_t one = 1;

	if (feeder->answers_fd >= 0 && write(feeder->answers_fd, &one, sizeof(one)) < 0)
		fail_run("cannot answer the feeder: %s", strerror(errno));
}

uint64_t feeder_end(struct feeder *feeder)
{
	uint64_t late_sends;
	bool answered;

	if (stop_interrupted())
		kill(feeder->pid, SIGTERM); /* the signal may have come to the workload alone */
	answered = read(feeder->control_fd, &late_sends, sizeof(late_sends)) == sizeof(late_sends);
	waitpid(feeder->pid, NULL, 0);
	if (!answered)
		fail_run("the feeder ended before its schedule");
	return late_sends;
}
