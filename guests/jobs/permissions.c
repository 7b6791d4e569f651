/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may open, read and write whose file. Each case is a process that gives up its rights in its
 * own way.
 */
#include "crew.h"
#include "fail.h"
#include "jobs.h"
#include "knobs.h"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { USER = 65534, OTHER_USER = 1000 };

static const char text[] = "weight 2048\n";

static void report(const char *who, const char *whose, const char *what, int error)
{
	printf("permission who=%s whose=%s what=%s errno=%s\n", who, whose, what,
	       error ? strerrorname_np(error) : "0");
}

static void become(uid_t user)
{
	must(setgroups(0, NULL));
	must(setresgid(user, user, user));
	must(setresuid(user, user, user));
	/* As after an exec: a process that changed its user hides its files even from itself. */
	must(prctl(PR_SET_DUMPABLE, 1));
}

/* Opens for this access: 0 or an errno. */
static int try_open(pid_t pid, int flags)
{
	char path[KNOBS_PATH];
	int file;

	knobs_thread_path(path, pid);
	file = open(path, flags);
	if (file < 0)
		return errno;
	close(file);
	return 0;
}

static int try_read(pid_t pid)
{
	char path[KNOBS_PATH];
	struct row row;
	int count;

	knobs_group_path(path, pid);
	count = knobs_read(path, &row, 1);
	return count < 0 ? -count : 0;
}

static int try_write(pid_t pid)
{
	char path[KNOBS_PATH];

	knobs_thread_path(path, pid);
	return knobs_write(path, text, strlen(text));
}

static void try_all(const char *who, const char *whose, pid_t pid)
{
	report(who, whose, "open-read", try_open(pid, O_RDONLY));
	report(who, whose, "open-write", try_open(pid, O_WRONLY));
	report(who, whose, "read", try_read(pid));
	report(who, whose, "write", try_write(pid));
}

static pid_t victim(uid_t user, bool dumpable)
{
	pid_t child = fork();

	must(child);
	if (child == 0) {
		if (user)
			become(user);
		must(prctl(PR_SET_DUMPABLE, dumpable));
		for (;;)
			pause();
	}
	/* It has given up its rights when it sleeps. */
	await_sleep(child);
	return child;
}

static void user_tries(const pid_t *victims)
{
	become(USER);
	try_all("user", "self", getpid());
	try_all("user", "same-user", victims[0]);
	try_all("user", "same-user-hidden", victims[1]);
	try_all("user", "other-user", victims[2]);
	try_all("user", "root", victims[3]);
}

static void root_tries(const pid_t *victims)
{
	try_all("root", "self", getpid());
	try_all("root", "user", victims[0]);
}

/*
 * A descriptor that root opened, used after its rights are gone: the reader and the writer are
 * asked again.
 */
static void dropped_tries(const pid_t *victims)
{
	char path[KNOBS_PATH], buffer[64];
	int file;

	knobs_thread_path(path, victims[3]);
	file = open(path, O_RDWR);
	must(file);
	become(USER);
	report("dropped", "root", "write", write(file, text, strlen(text)) < 0 ? errno : 0);
	report("dropped", "root", "read", read(file, buffer, sizeof(buffer)) < 0 ? errno : 0);
}

/*
 * The reverse: opened without rights, handed to somebody who has them, as a confused set-user-id
 * program is.
 */
static void deputy_tries(const pid_t *victims)
{
	char path[KNOBS_PATH];
	int file;

	must(setresgid(USER, USER, 0));
	must(setresuid(USER, USER, 0));
	knobs_thread_path(path, victims[0]);
	file = open(path, O_RDWR);
	must(file);
	must(setresuid(0, 0, 0));
	report("deputy", "user", "write", write(file, text, strlen(text)) < 0 ? errno : 0);
}

/* Root in a user namespace of its own, made by a user: all rights, but over nobody outside. */
static void namespace_tries(const pid_t *victims)
{
	become(USER);
	if (unshare(CLONE_NEWUSER) < 0) {
		report("namespace-root", "self", "unshare", errno);
		return;
	}
	must(prctl(PR_SET_DUMPABLE, 1));
	report("namespace-root", "self", "write", try_write(getpid()));
	report("namespace-root", "same-user", "write", try_write(victims[0]));
	report("namespace-root", "root", "write", try_write(victims[3]));
}

static void in_child(void (*act)(const pid_t *victims), const pid_t *victims)
{
	pid_t child = fork();

	must(child);
	if (child == 0) {
		act(victims);
		_Exit(0);
	}
	must(waitpid(child, NULL, 0));
}

void job_permissions(void)
{
	pid_t victims[] = {victim(USER, true), victim(USER, false), victim(OTHER_USER, true),
			   victim(0, true)};

	in_child(user_tries, victims);
	in_child(dropped_tries, victims);
	in_child(deputy_tries, victims);
	in_child(namespace_tries, victims);
	for (size_t i = 0; i < sizeof(victims) / sizeof(victims[0]); i++)
		printf("untouched victim=%zu weight=%lld\n", i, knobs_row(victims[i]).weight);
	in_child(root_tries, victims);
	for (size_t i = 0; i < sizeof(victims) / sizeof(victims[0]); i++)
		kill(victims[i], SIGKILL);
}
