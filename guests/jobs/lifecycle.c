/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of the knobs at fork, thread creation, exec, nice and a change of policy. */
#include "crew.h"
#include "fail.h"
#include "jobs.h"
#include "knobs.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CPU = 1, PRIORITY = 5, NICE = 5 };

static const char both[] = "weight 2048\ngranularity_ns 300000\n";

static void show(const char *after, pid_t tid)
{
	struct row row = knobs_row(tid);

	printf("life after=%s weight=%lld granularity_ns=%lld wakeups=%lld wakers=%s\n", after,
	       row.weight, row.granularity_ns, row.wakeups, row.wakers);
}

static void show_own(struct member *self)
{
	show("thread", self->tid);
}

static void in_child(void (*act)(void))
{
	pid_t child = fork();

	must(child);
	if (child == 0) {
		act();
		_Exit(0);
	}
	must(waitpid(child, NULL, 0));
}

static void forked(void)
{
	show("fork", getpid());
}

static void execs(void)
{
	knobs_set(getpid(), both);
	execl("/proc/self/exe", "guest-jobs", "after-exec", NULL);
	fail("exec");
}

void lifecycle_after_exec(void)
{
	show("exec", getpid());
}

void job_lifecycle(void)
{
	struct member member = {.run = show_own, .cpu = CPU};

	pin(CPU);
	show("start", getpid());
	knobs_set(getpid(), both);
	show("write", getpid());
	in_child(forked);
	crew_start(&member);
	crew_join(&member);
	in_child(execs);
	must(setpriority(PRIO_PROCESS, 0, NICE));
	show("nice", getpid());
	knobs_set(getpid(), "weight 500\n");
	show("weight-after-nice", getpid());
	must(setpriority(PRIO_PROCESS, 0, NICE));
	show("same-nice", getpid());
	knobs_set(getpid(), both);
	real_time(PRIORITY);
	show("real-time", getpid());
	real_time(0);
	show("ordinary-again", getpid());
	knobs_set(getpid(), "weight default\ngranularity_ns default\n");
	show("default", getpid());
}
