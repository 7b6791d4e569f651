/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and writes the dasec files of procfs. Columns are found by name: some may be appended
 * later.
 */
#ifndef KNOBS_H
#define KNOBS_H

#include <sys/types.h>

enum { KNOBS_PATH = 64, KNOBS_WAKERS = 1024, KNOBS_DEFAULT = -1 };

struct row {
	long long tid;
	char state;			  /* R on a core, Q queued, S neither */
	long long granularity_ns, weight; /* KNOBS_DEFAULT: not set */
	long long run_ns, ready_ns, voluntary, involuntary, wakeups, late, external, other, timers;
	char wakers[KNOBS_WAKERS];
};

void knobs_thread_path(char path[KNOBS_PATH], pid_t tid);
void knobs_group_path(char path[KNOBS_PATH], pid_t pid);

/* How many rows the file has, at most `most` of them stored; or minus an errno. */
int knobs_read(const char *path, struct row *rows, int most);

/* The row of one thread, which must be there. */
struct row knobs_row(pid_t tid);

/* Writes in one go: 0 or an errno. */
int knobs_write(const char *path, const char *text, size_t length);

/* Writes `text` to one thread's file; the job ends if the kernel refuses. */
void knobs_set(pid_t tid, const char *text);

/* How often `waker` woke the thread of this row by its table. */
long long knobs_woken_by(const struct row *row, pid_t waker);

#endif
