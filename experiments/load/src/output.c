/* SPDX-License-Identifier: Apache-2.0 */
#include "output.h"

#include "fail.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

FILE *output_open(const char *path)
{
	FILE *file = path ? fopen(path, "wb") : stdout;

	if (!file)
		fail_run("cannot write %s: %s", path, strerror(errno));
	return file;
}

void output_close(FILE *file, const char *path)
{
	bool failed = ferror(file) != 0;

	if ((file == stdout ? fflush(file) : fclose(file)) != 0)
		failed = true;
	if (failed)
		fail_run("cannot write %s: %s", path ? path : "standard output", strerror(errno));
}

struct json output_begin(FILE *file, const struct command_line *line, uint64_t seed, bool interrupted)
{
	struct json json = {.file = file};

	json_open_object(&json, NULL);
	json_count(&json, "schema", OUTPUT_SCHEMA);
	json_text(&json, "tool", "dasec-load");
	json_text(&json, "version", DASEC_LOAD_VERSION);
	json_text(&json, "subcommand", line->subcommand);
	cli_write_parameters(line, &json);
	json_count(&json, "seed", seed);
	json_bool(&json, "interrupted", interrupted);
	return json;
}

struct json output_begin_ready(FILE *file)
{
	struct json json = {.file = file};

	json_open_object(&json, NULL);
	json_bool(&json, "ready", true);
	json_count(&json, "pid", (uint64_t)getpid());
	return json;
}

void output_end(struct json *json, const char *path)
{
	json_close_object(json);
	fputc('\n', json->file);
	output_close(json->file, path);
}
