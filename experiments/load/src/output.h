/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OUTPUT_H
#define OUTPUT_H

#include "cli.h"
#include "json.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define OUTPUT_SCHEMA 1
#define DASEC_LOAD_VERSION "0.1.0"

/* Opens a file for writing, or ends the program with one line; NULL is stdout. */
FILE *output_open(const char *path);

/* Closes it (stdout: flushes) and fails the run when not everything was written. */
void output_close(FILE *file, const char *path);

/* Opens a result with what every one begins with: tool, version, parameters, seed, interrupted. */
struct json output_begin(FILE *file, const struct command_line *line, uint64_t seed,
			 bool interrupted);

/* Ends the result's object and line, and closes the file. */
void output_end(struct json *json, const char *path);

/* The line on stdout that says that all threads run: "ready" and the process id. */
struct json output_begin_ready(FILE *file);

#endif
