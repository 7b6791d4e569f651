/* SPDX-License-Identifier: Apache-2.0 */
#include "summary.h"

#include <math.h>
#include <stdlib.h>

static const struct {
	const char *name;
	double fraction;
} quantiles[] = {
	{"min", 0.0},  {"p50", 0.5},    {"p90", 0.9},   {"p95", 0.95},
	{"p99", 0.99}, {"p999", 0.999}, {"max", 1.0},
};

static int ascending(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left;
	uint64_t b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

static double mean(const uint64_t *values, size_t count)
{
	double sum = 0.0;

	for (size_t i = 0; i < count; i++)
		sum += (double)values[i];
	return sum / (double)count;
}

/* Nearest rank: the smallest value that at least this fraction of all does not exceed. */
static uint64_t quantile(const uint64_t *sorted, size_t count, double fraction)
{
	double rank = ceil(fraction * (double)count - 1e-9);

	return sorted[rank < 1.0 ? 0 : (size_t)rank - 1];
}

void summary_write(struct json *json, const char *key, uint64_t *values, size_t count)
{
	qsort(values, count, sizeof(*values), ascending);
	json_open_object(json, key);
	json_count(json, "count", count);
	if (count)
		json_real(json, "mean", mean(values, count));
	else
		json_null(json, "mean");
	for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++) {
		if (count)
			json_count(json, quantiles[i].name,
				   quantile(values, count, quantiles[i].fraction));
		else
			json_null(json, quantiles[i].name);
	}
	json_close_object(json);
}
