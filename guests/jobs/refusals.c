/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input that the kernel must refuse, each with the errno that is documented, and nothing may have
 * changed after it.
 */
#include "crew.h"
#include "fail.h"
#include "jobs.h"
#include "knobs.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CPU = 1, PRIORITY = 5, LIMIT = 64 * 1024 };

/*
 * Where a text says SELF, the thread's own id goes; STRANGER is that of a thread of another
 * process.
 */
static const struct {
	const char *name, *text;
} batches[] = {
	{"accepted", "SELF weight 1500\nSELF granularity_ns 70000\n"},
	{"lowest-and-highest",
	 "SELF weight 2\nSELF weight 262144\n"
	 "SELF granularity_ns 0\nSELF granularity_ns 1000000000\n"},
	{"good-then-weight-too-small", "SELF weight 2048\nSELF weight 1\n"},
	{"good-then-weight-too-large", "SELF weight 2048\nSELF weight 262145\n"},
	{"good-then-granularity-too-large", "SELF weight 2048\nSELF granularity_ns 1000000001\n"},
	{"good-then-number-of-30-digits",
	 "SELF weight 2048\nSELF weight 999999999999999999999999999999\n"},
	{"good-then-negative", "SELF weight 2048\nSELF granularity_ns -1\n"},
	{"good-then-sign", "SELF weight 2048\nSELF weight +1024\n"},
	{"good-then-hexadecimal", "SELF weight 2048\nSELF weight 0x400\n"},
	{"good-then-fraction", "SELF weight 2048\nSELF weight 10.5\n"},
	{"good-then-word", "SELF weight 2048\nSELF weight heavy\n"},
	{"good-then-unknown-key", "SELF weight 2048\nSELF slice 5\n"},
	{"good-then-no-value", "SELF weight 2048\nSELF weight\n"},
	{"good-then-no-key", "SELF weight 2048\nSELF\n"},
	{"good-then-four-words", "SELF weight 2048\nSELF weight 2048 1\n"},
	{"good-then-two-spaces", "SELF weight 2048\nSELF  weight 2048\n"},
	{"good-then-empty-line", "SELF weight 2048\n\n"},
	{"good-then-no-newline", "SELF weight 2048\nSELF weight 1024"},
	{"good-then-carriage-return", "SELF weight 2048\nSELF weight 1024\r\n"},
	{"good-then-stranger", "SELF weight 2048\nSTRANGER weight 2048\n"},
	{"good-then-nobody", "SELF weight 2048\n4194303 weight 2048\n"},
	{"good-then-thread-zero", "SELF weight 2048\n0 weight 2048\n"},
	{"good-then-word-for-a-thread", "SELF weight 2048\nself weight 2048\n"},
	{"only-a-newline", "\n"},
};

static const char *name_of(int error)
{
	return error ? strerrorname_np(error) : "0";
}

static size_t fill_in(char *out, const char *text, pid_t self, pid_t stranger)
{
	size_t length = 0;

	while (*text) {
		if (strncmp(text, "SELF", 4) == 0) {
			length += (size_t)sprintf(out + length, "%d", self);
			text += 4;
		} else if (strncmp(text, "STRANGER", 8) == 0) {
			length += (size_t)sprintf(out + length, "%d", stranger);
			text += 8;
		} else {
			out[length++] = *text++;
		}
	}
	return length;
}

/* From known values, so that what a refused write leaves behind can be seen. */
static void try_text(const char *name, const char *path, const char *text, size_t length)
{
	int error;
	struct row row;

	knobs_set(getpid(), "weight 1111\ngranularity_ns 222222\n");
	error = knobs_write(path, text, length);
	row = knobs_row(getpid());
	printf("refusal of=%s errno=%s weight=%lld granularity_ns=%lld\n", name, name_of(error),
	       row.weight, row.granularity_ns);
}

static void try_lengths(const char *group)
{
	static char text[LIMIT + 64];
	size_t length = 0;

	while (length <= LIMIT)
		length += (size_t)sprintf(text + length, "%d weight 3000\n", getpid());
	try_text("more-than-64-KiB", group, text, length);
	while (length > LIMIT || text[length - 1] != '\n')
		length--;
	try_text("at-most-64-KiB", group, text, length);
	try_text("nothing", group, text, 0);
	memcpy(text, "weight 2048\n\0\n", 14);
	knobs_thread_path(text + 32, getpid());
	try_text("good-then-zero-byte", text + 32, text, 14);
}

static void try_thread_file(void)
{
	static const char one[] = "weight 900\ngranularity_ns 5\n", other[] = "1 weight 900\n";
	char path[KNOBS_PATH];

	knobs_thread_path(path, getpid());
	try_text("thread-file-accepted", path, one, strlen(one));
	try_text("thread-file-with-an-id", path, other, strlen(other));
}

static void try_policies(void)
{
	char path[KNOBS_PATH];

	knobs_set(getpid(), "weight default\n");
	real_time(PRIORITY);
	knobs_thread_path(path, getpid());
	for (int i = 0; i < 2; i++) {
		const char *text = i ? "granularity_ns 5\n" : "weight 900\n";

		printf("policy key=%s errno=%s\n", i ? "granularity_ns" : "weight",
		       name_of(knobs_write(path, text, strlen(text))));
	}
	real_time(0);
	printf("policy left-weight=%lld\n", knobs_row(getpid()).weight);
}

static void try_the_dead(pid_t stranger)
{
	char path[KNOBS_PATH], buffer[16];
	int file;

	knobs_thread_path(path, stranger);
	file = open(path, O_RDWR);
	must(file);
	kill(stranger, SIGKILL);
	must(waitpid(stranger, NULL, 0));
	printf("ended write=%s", name_of(write(file, "weight 900\n", 11) < 0 ? errno : 0));
	printf(" read=%s", name_of(read(file, buffer, sizeof(buffer)) < 0 ? errno : 0));
	printf(" open=%s\n", name_of(knobs_write(path, "weight 900\n", 11)));
}

void job_refusals(void)
{
	char group[KNOBS_PATH], text[256];
	pid_t stranger = fork();

	must(stranger);
	if (stranger == 0) {
		for (;;)
			pause();
	}
	pin(CPU);
	knobs_group_path(group, getpid());
	for (size_t i = 0; i < sizeof(batches) / sizeof(batches[0]); i++)
		try_text(batches[i].name, group, text,
			 fill_in(text, batches[i].text, getpid(), stranger));
	try_lengths(group);
	try_thread_file();
	try_policies();
	printf("stranger weight=%lld\n", knobs_row(stranger).weight);
	try_the_dead(stranger);
}
