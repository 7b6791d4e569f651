/* SPDX-License-Identifier: Apache-2.0 */
#include "output.h"

#include "fail.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

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
