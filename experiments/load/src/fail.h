/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FAIL_H
#define FAIL_H

/* Bad usage: one line "dasec-load: --NAME: ..." on stderr, exit 2. */
_Noreturn void fail_option(const char *name, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The run failed: one line "dasec-load: ..." on stderr, exit 1. */
_Noreturn void fail_run(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* As fail_run, without the exit: for a run that still has results to write. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
