/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random writes to the files of a process whose knobs we know. What follows the grammar must be
 * taken and show up; damaged text may be either, but if it is refused, nothing may have changed. A
 * second process whose threads come and go gets the same, without the bookkeeping.
 */
#include "chance.h"
#include "fail.h"
#include "jobs.h"
#include "knobs.h"
#include "mutate.h"
#include "prey.h"

#include <stdbool.h>
#include <unistd.h>

enum {
	WRITES = 100000,
	THREADS = PREY_THREADS,
	LINES = 6,
	BLOB = 1 << 17,
	ERRNOS = 256,
	CHECK_EVERY = 16,
	READ_EVERY = 32
};
enum {
	SEED = 20260101,
	RARELY = 256,
	WEIGHT_MIN = 2,
	WEIGHT_MAX = 262144,
	GRANULARITY_MAX_NS = 1000000000
};

struct fuzzer {
	struct chance chance;
	struct prey steady, restless;
	struct row known[THREADS];
	long long taken, refused[ERRNOS], valid_refused, broken, reads;
	char text[BLOB];
};

static void read_known(struct fuzzer *fuzzer, struct row rows[THREADS])
{
	char path[KNOBS_PATH];
	struct row read[THREADS];

	knobs_group_path(path, fuzzer->steady.pid);
	if (knobs_read(path, read, THREADS) != THREADS)
		fail("the target lost a thread");
	for (int i = 0; i < THREADS * THREADS; i++) {
		if (read[i % THREADS].tid == fuzzer->steady.tids[i / THREADS])
			rows[i / THREADS] = read[i % THREADS];
	}
}

static void complain(struct fuzzer *fuzzer, const char *what, int thread, size_t length)
{
	if (fuzzer->broken++ > 0)
		return;
	printf("breach of=%s thread=%d length=%zu text=", what, thread, length);
	for (size_t i = 0; i < length && i < 200; i++)
		printf(fuzzer->text[i] > ' ' && fuzzer->text[i] < 127 ? "%c" : "\\x%02x",
		       (unsigned char)fuzzer->text[i]);
	printf("\n");
}

static bool in_range(const struct row *row)
{
	bool weight = row->weight == KNOBS_DEFAULT ||
		      (row->weight >= WEIGHT_MIN && row->weight <= WEIGHT_MAX);

	return weight && row->granularity_ns >= KNOBS_DEFAULT &&
	       row->granularity_ns <= GRANULARITY_MAX_NS;
}

static void compare(struct fuzzer *fuzzer, size_t length)
{
	struct row rows[THREADS];

	read_known(fuzzer, rows);
	for (int i = 0; i < THREADS; i++) {
		if (rows[i].weight != fuzzer->known[i].weight ||
		    rows[i].granularity_ns != fuzzer->known[i].granularity_ns)
			complain(fuzzer, "a-knob-is-not-as-written", i, length);
	}
}

/* After damaged text was taken: whatever it said, it can only be something allowed. */
static void learn(struct fuzzer *fuzzer, size_t length)
{
	read_known(fuzzer, fuzzer->known);
	for (int i = 0; i < THREADS; i++) {
		if (!in_range(&fuzzer->known[i]))
			complain(fuzzer, "a-knob-is-out-of-range", i, length);
	}
	if (fuzzer->known[THREADS - 1].weight != KNOBS_DEFAULT)
		complain(fuzzer, "a-real-time-thread-has-a-weight", THREADS - 1, length);
}

/* One line that must be taken, noted in `rows`. `tid` 0: for a thread's own file. */
static size_t valid_line(struct chance *chance, char *text, struct row *row, pid_t tid)
{
	bool weight = chance_below(chance, 2), unset = chance_below(chance, 8) == 0;
	long long value = weight ? WEIGHT_MIN + chance_below(chance, WEIGHT_MAX - WEIGHT_MIN + 1)
				 : chance_below(chance, GRANULARITY_MAX_NS + 1);
	int length = tid ? sprintf(text, "%d ", tid) : 0;

	length += sprintf(text + length, weight ? "weight " : "granularity_ns ");
	length += unset ? sprintf(text + length, "default\n")
			: sprintf(text + length, "%lld\n", value);
	*(weight ? &row->weight : &row->granularity_ns) = unset ? KNOBS_DEFAULT : value;
	return (size_t)length;
}

static size_t valid_text(struct fuzzer *fuzzer, struct row rows[THREADS], const struct prey *prey,
			 int only)
{
	unsigned lines = 1 + chance_below(&fuzzer->chance, LINES);
	size_t length = 0;

	for (unsigned i = 0; i < lines; i++) {
		int thread = only >= 0 ? only : (int)chance_below(&fuzzer->chance, THREADS - 1);

		length += valid_line(&fuzzer->chance, fuzzer->text + length, &rows[thread],
				     only >= 0 ? 0 : prey->tids[thread]);
	}
	return length;
}

static size_t damage(struct fuzzer *fuzzer, size_t length)
{
	unsigned times = 1 + chance_below(&fuzzer->chance, 3);

	if (chance_below(&fuzzer->chance, RARELY) == 0) {
		length = chance_below(&fuzzer->chance, BLOB);
		for (size_t i = 0; i + 8 <= length; i += 8) {
			uint64_t noise = chance_next(&fuzzer->chance);

			memcpy(fuzzer->text + i, &noise, 8);
		}
	}
	for (unsigned i = 0; i < times; i++)
		length = mutate(&fuzzer->chance, fuzzer->text, length, BLOB);
	return length;
}

/* Writes, counts the answer: 0 or an errno. */
static int put(struct fuzzer *fuzzer, int file, size_t length)
{
	ssize_t written = write(file, fuzzer->text, length);
	int error = written < 0 ? errno : 0;

	if (written >= 0 && (size_t)written != length)
		complain(fuzzer, "a-write-was-taken-in-part", -1, length);
	if (error)
		fuzzer->refused[error % ERRNOS]++;
	else
		fuzzer->taken++;
	return error;
}

static void strike_steady(struct fuzzer *fuzzer, int number)
{
	struct row rows[THREADS];
	int thread = (int)chance_below(&fuzzer->chance, 2 * THREADS) -
		     THREADS; /* below 0: the group's file */
	int file = thread < 0 ? fuzzer->steady.group : fuzzer->steady.threads[thread];
	bool damaged = chance_below(&fuzzer->chance, 5) > 1 || thread == THREADS - 1;
	size_t length;
	int error;

	memcpy(rows, fuzzer->known, sizeof(rows));
	length = valid_text(fuzzer, rows, &fuzzer->steady, thread);
	if (damaged)
		length = damage(fuzzer, length);
	error = put(fuzzer, file, length);
	if (!damaged && error) {
		fuzzer->valid_refused++;
		complain(fuzzer, "valid-text-was-refused", thread, length);
	}
	if (!damaged && !error)
		memcpy(fuzzer->known, rows, sizeof(rows));
	if (damaged && !error)
		learn(fuzzer, length);
	else if (number % CHECK_EVERY == 0)
		compare(fuzzer, length);
}

static void strike_restless(struct fuzzer *fuzzer)
{
	struct row rows[THREADS];
	size_t length;

	length = valid_text(fuzzer, rows, &fuzzer->restless, -1);
	if (chance_below(&fuzzer->chance, 2))
		length = damage(fuzzer, length);
	put(fuzzer, fuzzer->restless.group, length);
}

static void read_anywhere(struct fuzzer *fuzzer)
{
	int files[] = {fuzzer->steady.group, fuzzer->steady.threads[1], fuzzer->restless.group};

	pread(files[chance_below(&fuzzer->chance, 3)], fuzzer->text,
	      chance_below(&fuzzer->chance, 4096), chance_below(&fuzzer->chance, 2048));
	fuzzer->reads++;
}

static void report(const struct fuzzer *fuzzer)
{
	printf("fuzz writes=%d taken=%lld valid_refused=%lld broken=%lld reads=%lld", WRITES,
	       fuzzer->taken, fuzzer->valid_refused, fuzzer->broken, fuzzer->reads);
	for (int i = 1; i < ERRNOS; i++) {
		if (fuzzer->refused[i])
			printf(" %s=%lld", strerrorname_np(i), fuzzer->refused[i]);
	}
	printf("\n");
}

void job_fuzz(void)
{
	static struct fuzzer fuzzer = {.chance = {SEED}};

	fuzzer.steady = prey_steady();
	fuzzer.restless = prey_restless();
	read_known(&fuzzer, fuzzer.known);
	for (int i = 0; i < WRITES; i++) {
		if (chance_below(&fuzzer.chance, 8))
			strike_steady(&fuzzer, i);
		else
			strike_restless(&fuzzer);
		if (chance_below(&fuzzer.chance, READ_EVERY) == 0)
			read_anywhere(&fuzzer);
	}
	compare(&fuzzer, 0);
	report(&fuzzer);
	prey_end(&fuzzer.steady);
	prey_end(&fuzzer.restless);
}
