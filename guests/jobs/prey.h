/* SPDX-License-Identifier: Apache-2.0 */
/* Two processes to write at: one whose threads stay, and one whose threads come and go. */
#ifndef PREY_H
#define PREY_H

#include <sys/types.h>

enum { PREY_THREADS = 4 };

struct prey {
	pid_t pid;
	pid_t *tids; /* kept up to date by the process; the last one of the steady prey is
			SCHED_FIFO */
	int group;   /* descriptors of its files */
	int threads[PREY_THREADS]; /* of the steady prey only */
};

struct prey prey_steady(void);
struct prey prey_restless(void);
void prey_end(struct prey *prey);

#endif
