/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <stdio.h>

/* Opens a file for writing, or ends the program with one line; NULL is stdout. */
FILE *output_open(const char *path);

/* Closes it (stdout: flushes) and fails the run when not everything was written. */
void output_close(FILE *file, const char *path);

#endif
