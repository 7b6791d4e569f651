/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batch work that communicates, after the paper's MatrixMul (section 6.5): in each iteration main makes the
 * operands, hands each worker its rows and waits for all, so that no worker gets on while main is delayed.
 * The numbers are small integers, exact in a double, so that main can check each product by its sum.
 */
#include "clock.h"
#include "cpu.h"
#include "crew.h"
#include "fail.h"
#include "memory.h"
#include "output.h"
#include "start.h"
#include "stop.h"
#include "subcommands.h"

#include <string.h>

#define MOST_THREADS 1024
#define MOST_SIZE 4096
#define START_DELAY_NS (50 * NS_PER_MS)
#define LARGEST_ENTRY 11

struct options {
	uint64_t threads, size, seed;
	double seconds, warmup;
	bool start_on_stdin;
	const char *out, *ready;
};

struct product {
	struct options options;
	struct crew crew;
	double *left, *right, *result;
	struct gate done;
	atomic_bool closing;
};

struct worker {
	struct product *product;
	struct gate go;
	uint64_t first, last; /* rows, the last one excluded */
};

static void multiply_row(const struct product *product, uint64_t row)
{
	uint64_t size = product->options.size;
	double *result = product->result + row * size;

	memset(result, 0, size * sizeof(*result));
	for (uint64_t k = 0; k < size; k++) {
		double factor = product->left[row * size + k];
		const double *right = product->right + k * size;

		for (uint64_t column = 0; column < size; column++)
			result[column] += factor * right[column];
	}
}

static void run_worker(void *argument)
{
	struct worker *worker = argument;
	struct product *product = worker->product;

	for (;;) {
		gate_wait(&worker->go);
		if (atomic_load(&product->closing))
			return;
		for (uint64_t row = worker->first; row < worker->last; row++)
			multiply_row(product, row);
		gate_post(&product->done);
	}
}

static void make_operands(struct product *product, uint64_t iteration)
{
	uint64_t size = product->options.size, shift = product->options.seed % LARGEST_ENTRY + iteration;

	for (uint64_t i = 0; i < size; i++)
		for (uint64_t j = 0; j < size; j++) {
			product->left[i * size + j] = (double)((7 * i + 3 * j + shift) % LARGEST_ENTRY);
			product->right[i * size + j] = (double)((2 * i + 5 * j + shift) % LARGEST_ENTRY);
		}
}

/* The sum of all entries of the product, by the operands' columns and rows. */
static double expected_sum(const struct product *product)
{
	uint64_t size = product->options.size;
	double sum = 0.0;

	for (uint64_t k = 0; k < size; k++) {
		double column = 0.0, row = 0.0;

		for (uint64_t i = 0; i < size; i++) {
			column += product->left[i * size + k];
			row += product->right[k * size + i];
		}
		sum += column * row;
	}
	return sum;
}

static void check(const struct product *product)
{
	uint64_t size = product->options.size;
	double sum = 0.0;

	for (uint64_t i = 0; i < size * size; i++)
		sum += product->result[i];
	if (sum != expected_sum(product))
		fail_run("a product is wrong: its entries add up to %.0f", sum);
}

static void iterate(struct product *product, struct worker *workers, uint64_t iteration)
{
	make_operands(product, iteration);
	for (uint64_t i = 0; i < product->options.threads; i++)
		gate_post(&workers[i].go);
	for (uint64_t i = 0; i < product->options.threads; i++)
		gate_wait(&product->done);
	check(product);
}

static struct worker *start_threads(struct product *product)
{
	const struct options *o = &product->options;
	struct worker *workers = memory_touched(o->threads, sizeof(*workers));

	gate_init(&product->done, GATE_FUTEX);
	crew_init(&product->crew, o->threads + 1);
	crew_adopt(&product->crew, "main");
	for (uint64_t i = 0; i < o->threads; i++) {
		workers[i] = (struct worker){.product = product, .first = i * o->size / o->threads,
					     .last = (i + 1) * o->size / o->threads};
		gate_init(&workers[i].go, GATE_FUTEX);
		crew_start(&product->crew, "worker", (int)i, ANY_CPU, run_worker, &workers[i]);
	}
	crew_wait_started(&product->crew);
	return workers;
}

static void announce(const struct product *product)
{
	FILE *file = output_open(product->options.ready);
	struct json json = output_begin_ready(file);

	crew_write_tids(&product->crew, &json, "threads");
	output_end(&json, product->options.ready);
}

struct window {
	struct cpu_mark begin, end;
	uint64_t iterations;
	bool begun;
};

static struct window work(struct product *product, struct worker *workers)
{
	const struct options *o = &product->options;
	uint64_t start_ns = o->start_on_stdin ? start_read() : clock_now_ns() + START_DELAY_NS;
	uint64_t warmup_end_ns = start_ns + (uint64_t)(o->warmup * (double)NS_PER_S);
	uint64_t end_ns = warmup_end_ns + (uint64_t)(o->seconds * (double)NS_PER_S);
	struct window window = {.begin = cpu_mark_make(&product->crew), .end = cpu_mark_make(&product->crew)};

	stop_wait_until(start_ns);
	for (uint64_t iteration = 0; clock_now_ns() < end_ns && !stop_requested(); iteration++) {
		if (!window.begun && clock_now_ns() >= warmup_end_ns) {
			cpu_mark_take(&window.begin, &product->crew);
			window.begun = true;
		}
		iterate(product, workers, iteration);
		window.iterations += window.begun;
	}
	cpu_mark_take(&window.end, &product->crew);
	return window;
}

static void end_threads(struct product *product, struct worker *workers)
{
	atomic_store(&product->closing, true);
	for (uint64_t i = 0; i < product->options.threads; i++)
		gate_post(&workers[i].go);
	crew_join(&product->crew);
}

static void write_result(const struct product *product, const struct window *window,
			 const struct command_line *line, FILE *file)
{
	const struct options *o = &product->options;
	struct json json = output_begin(file, line, o->seed, stop_interrupted());
	const struct cpu_mark *begin = window->begun ? &window->begin : &window->end;

	json_real(&json, "seconds_measured", (double)(window->end.at_ns - begin->at_ns) / (double)NS_PER_S);
	json_count(&json, "iterations", window->iterations);
	cpu_write(&product->crew, begin, &window->end, &json);
	output_end(&json, o->out);
}

static struct command_line parse(struct options *o, char **arguments)
{
	struct option_spec table[] = {
		COUNT("threads", &o->threads, 1, MOST_THREADS, "workers; main only hands out and checks"),
		COUNT("size", &o->size, 1, MOST_SIZE, "rows and columns"),
		REAL_ABOVE("seconds", &o->seconds, 0.0, 1e6, "length of the measured part"),
		REAL("warmup", &o->warmup, 0.0, 1e6, "seconds before it, not measured"),
		COUNT("seed", &o->seed, 0, UINT64_MAX, "of the numbers"),
		FLAG("start-on-stdin", &o->start_on_stdin,
		     "the CLOCK_MONOTONIC time of the start is a line on standard input"),
		TEXT("out", &o->out, "file of the result, else standard output"),
		TEXT("ready", &o->ready, "file of the ready line, else standard output"),
	};
	static struct option_spec specs[sizeof(table) / sizeof(table[0])];
	struct command_line line = {
		.subcommand = "matrixmul",
		.summary = "Multiplies matrices: main hands rows to workers and waits for all of them.",
		.options = specs,
		.count = sizeof(table) / sizeof(table[0]),
	};

	for (size_t i = 0; i < line.count; i++)
		specs[i] = table[i];
	*o = (struct options){.threads = 2, .size = 128, .seconds = 10.0, .warmup = 1.0, .seed = 1};
	cli_parse(&line, arguments);
	return line;
}

int matrixmul_main(char **arguments)
{
	static struct product product;
	struct command_line line = parse(&product.options, arguments);
	uint64_t entries = product.options.size * product.options.size;
	FILE *file = output_open(product.options.out);
	struct worker *workers;
	struct window window;

	product.left = memory_touched(entries, sizeof(double));
	product.right = memory_touched(entries, sizeof(double));
	product.result = memory_touched(entries, sizeof(double));
	stop_install_handlers();
	workers = start_threads(&product);
	announce(&product);
	window = work(&product, workers);
	end_threads(&product, workers);
	write_result(&product, &window, &line, file);
	return 0;
}
