/* SPDX-License-Identifier: Apache-2.0 */
#include "run.h"

#include "clock.h"
#include "fail.h"
#include "memory.h"
#include "output.h"
#include "start.h"
#include "stop.h"
#include "summary.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Time between the ready line and the start: enough for all threads to fall asleep first. */
#define START_DELAY_NS (50 * NS_PER_MS)

static uint64_t to_ns(double seconds)
{
	return (uint64_t)(seconds * (double)NS_PER_S);
}

/* The ready file comes by rename, which would put it in a device's place, /dev/null among them. */
static void refuse_special_file(const char *path)
{
	struct stat there;

	if (path && stat(path, &there) == 0 && !S_ISREG(there.st_mode))
		fail_option("ready", "must be a regular file or a new one, got '%s'", path);
}

void run_prepare(struct run *run, const struct run_options *options, struct command_line *line)
{
	struct arrival_rate rate;

	if (cli_given(line, "step-at") != cli_given(line, "step-rate"))
		fail_option(cli_given(line, "step-at") ? "step-at" : "step-rate",
			    "--step-at and --step-rate go together");
	if (cli_given(line, "start-at-ns") && options->start_on_stdin)
		fail_option("start-on-stdin", "cannot be combined with --start-at-ns");
	rate = (struct arrival_rate){options->rate, options->step_rate, to_ns(options->step_at)};
	refuse_special_file(options->ready);
	*run = (struct run){.options = options, .line = line};
	run->arrivals = arrivals_make(options->seed, &rate, to_ns(options->warmup),
				      to_ns(options->warmup + options->seconds));
	run->samples = samples_make(&run->arrivals);
	run->out = output_open(options->out);
	if (options->arrivals)
		arrivals_write(&run->arrivals, options->arrivals);
}

static void set_start(struct run *run, uint64_t asked_ns)
{
	uint64_t now_ns = clock_now_ns();

	if (asked_ns && asked_ns < now_ns)
		fail_run("--start-at-ns: passed %llu us before everything was ready",
			 (now_ns - asked_ns) / NS_PER_US);
	run->start_ns = asked_ns ? asked_ns : now_ns + START_DELAY_NS;
	run->warmup_end_ns = run->start_ns + to_ns(run->options->warmup);
	run->nominal_end_ns = run->start_ns + to_ns(run->options->warmup + run->options->seconds);
	run->samples.start_ns = run->start_ns;
}

static void write_ready(FILE *file, const char *path, const struct run *run, const struct crew *crew,
			pid_t feeder)
{
	struct json json = output_begin_ready(file);

	crew_write_tids(crew, &json, "threads");
	if (feeder)
		json_count(&json, "feeder_pid", (uint64_t)feeder);
	json_count(&json, "start_at_ns", run->start_ns);
	output_end(&json, path);
}

/* A reader that polls for the file never sees half a line. */
static void write_ready_file(const struct run *run, const struct crew *crew, pid_t feeder)
{
	const char *path = run->options->ready;
	char temporary[4096];
	FILE *file;

	if (snprintf(temporary, sizeof(temporary), "%s.part", path) >= (int)sizeof(temporary))
		fail_option("ready", "is too long a path");
	file = output_open(temporary);
	write_ready(file, temporary, run, crew, feeder);
	if (rename(temporary, path) != 0)
		fail_run("cannot write %s: %s", path, strerror(errno));
}

void run_announce(struct run *run, const struct crew *crew, pid_t feeder)
{
	if (!run->options->start_on_stdin)
		set_start(run, run->options->start_at_ns);
	if (run->options->ready)
		write_ready_file(run, crew, feeder);
	else
		write_ready(stdout, NULL, run, crew, feeder);
	if (run->options->start_on_stdin)
		set_start(run, start_read());
}

uint64_t run_scheduled_ns(const struct run *run, size_t request)
{
	return run->start_ns + run->arrivals.offsets_ns[request];
}

bool run_is_measured(const struct run *run, size_t request)
{
	return request >= run->arrivals.first_measured;
}

/* From the end of the warm-up to the last completion, at least to the end of the schedule. */
static double measured_seconds(const struct run *run)
{
	if (run->end_ns <= run->warmup_end_ns)
		return 0.0;
	return (double)(run->end_ns - run->warmup_end_ns) / (double)NS_PER_S;
}

struct json run_open_result(struct run *run)
{
	struct json json =
		output_begin(run->out, run->line, run->options->seed, stop_interrupted());
	size_t completed = samples_completed(&run->samples);
	double seconds = measured_seconds(run);

	json_count(&json, "start_at_ns", run->start_ns);
	json_count(&json, "warmup_arrivals", run->arrivals.first_measured);
	json_count(&json, "arrivals_scheduled", run->samples.count);
	json_count(&json, "completed", completed);
	json_count(&json, "errors", run->errors);
	json_count(&json, "unfinished", run->samples.count - completed - run->errors);
	json_count(&json, "late_sends", run->late_sends);
	json_real(&json, "seconds_measured", seconds);
	json_real(&json, "throughput_per_s", seconds > 0.0 ? (double)completed / seconds : 0.0);
	return json;
}

enum column { QUEUE, SERVICE, SOJOURN };

/* Left out, the slowest requests would flatter the rest. Of a run that was interrupted most were not due yet. */
static size_t add_unanswered(const struct run *run, uint64_t *values, size_t count)
{
	if (run->unanswered_ns && !stop_interrupted())
		while (count < run->samples.count)
			values[count++] = run->unanswered_ns;
	return count;
}

static void write_column(struct json *json, const char *key, const struct run *run, enum column column)
{
	const struct samples *samples = &run->samples;
	uint64_t *values = memory_touched(samples->count, sizeof(*values));
	size_t count = 0;

	for (size_t i = 0; i < samples->count; i++) {
		const struct sample *s = &samples->items[i];
		const uint64_t columns[] = {s->queue_ns, s->service_ns, s->sojourn_ns};

		if (s->sojourn_ns)
			values[count++] = columns[column];
	}
	if (column == SOJOURN)
		count = add_unanswered(run, values, count);
	summary_write(json, key, values, count);
}

void run_close_result(struct run *run, struct json *json)
{
	write_column(json, "latency_ns", run, SOJOURN);
	write_column(json, "queue_ns", run, QUEUE);
	write_column(json, "service_ns", run, SERVICE);
	output_end(json, run->options->out);
	if (run->options->samples)
		samples_write(&run->samples, run->options->samples);
}
