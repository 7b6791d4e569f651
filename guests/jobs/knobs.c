/* SPDX-License-Identifier: Apache-2.0 */
#include "knobs.h"

#include "fail.h"

#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>

enum { FILE_LIMIT = 1 << 17, COLUMNS = 32, HEADER_LINES = 3 };

static const struct {
	const char *name;
	size_t offset;
} numbers[] = {
	{"tid", offsetof(struct row, tid)},
	{"granularity_ns", offsetof(struct row, granularity_ns)},
	{"weight", offsetof(struct row, weight)},
	{"run_ns", offsetof(struct row, run_ns)},
	{"ready_ns", offsetof(struct row, ready_ns)},
	{"voluntary", offsetof(struct row, voluntary)},
	{"involuntary", offsetof(struct row, involuntary)},
	{"wakeups", offsetof(struct row, wakeups)},
	{"late", offsetof(struct row, late)},
	{"external", offsetof(struct row, external)},
	{"other", offsetof(struct row, other)},
	{"timers", offsetof(struct row, timers)},
};

void knobs_thread_path(char path[KNOBS_PATH], pid_t tid)
{
	snprintf(path, KNOBS_PATH, "/proc/%d/task/%d/dasec", tid, tid);
}

void knobs_group_path(char path[KNOBS_PATH], pid_t pid)
{
	snprintf(path, KNOBS_PATH, "/proc/%d/dasec", pid);
}

static void store(struct row *row, const char *name, const char *value)
{
	if (strcmp(name, "state") == 0)
		row->state = value[0];
	if (strcmp(name, "wakers") == 0)
		snprintf(row->wakers, sizeof(row->wakers), "%s", value);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (strcmp(name, numbers[i].name) == 0)
			*(long long *)((char *)row + numbers[i].offset) =
				strcmp(value, "default") == 0 ? KNOBS_DEFAULT : atoll(value);
	}
}

static int split(char *line, char **words)
{
	char *rest = NULL;
	int count = 0;

	for (char *word = strtok_r(line, " ", &rest); word && count < COLUMNS;
	     word = strtok_r(NULL, " ", &rest))
		words[count++] = word;
	return count;
}

static int parse(char *text, struct row *rows, int most)
{
	char *names[COLUMNS], *values[COLUMNS], *rest = NULL;
	int columns = 0, number = 0;

	for (char *line = strtok_r(text, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest), number++) {
		if (number == HEADER_LINES - 1)
			columns = split(line, names);
		if (number < HEADER_LINES || number - HEADER_LINES >= most)
			continue;
		if (split(line, values) != columns)
			fail("a row has not as many values as there are columns");
		for (int i = 0; i < columns; i++)
			store(&rows[number - HEADER_LINES], names[i], values[i]);
	}
	if (number < HEADER_LINES)
		fail("fewer than three lines in a dasec file");
	return number - HEADER_LINES;
}

int knobs_read(const char *path, struct row *rows, int most)
{
	char *text = malloc(FILE_LIMIT);
	int file = open(path, O_RDONLY | O_CLOEXEC), count;
	ssize_t length = file < 0 ? -1 : read(file, text, FILE_LIMIT - 1);

	count = length < 0 ? -errno : 0;
	if (file >= 0)
		close(file);
	if (length >= 0) {
		text[length] = '\0';
		count = length == 0 ? -ESRCH : parse(text, rows, most);
	}
	free(text);
	return count;
}

struct row knobs_row(pid_t tid)
{
	char path[KNOBS_PATH];
	struct row row = {0};

	knobs_thread_path(path, tid);
	errno = 0;
	if (knobs_read(path, &row, 1) != 1 || row.tid != tid)
		fail(path);
	return row;
}

int knobs_write(const char *path, const char *text, size_t length)
{
	int file = open(path, O_WRONLY | O_CLOEXEC), status = 0;
	ssize_t written;

	if (file < 0)
		return errno;
	written = write(file, text, length);
	if (written != (ssize_t)length)
		status = written < 0 ? errno : EIO;
	close(file);
	return status;
}

void knobs_set(pid_t tid, const char *text)
{
	char path[KNOBS_PATH];

	knobs_thread_path(path, tid);
	errno = knobs_write(path, text, strlen(text));
	if (errno)
		fail(text);
}

long long knobs_woken_by(const struct row *row, pid_t waker)
{
	char wanted[16];

	snprintf(wanted, sizeof(wanted), "%d:", waker);
	for (const char *at = row->wakers; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (strncmp(at, wanted, strlen(wanted)) == 0)
			return atoll(at + strlen(wanted));
	}
	return 0;
}
