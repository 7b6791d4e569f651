/* SPDX-License-Identifier: Apache-2.0 */
#include "samples.h"

#include "memory.h"
#include "output.h"

#include <stdio.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files are written in host byte order");

struct samples samples_make(const struct arrivals *arrivals)
{
	size_t count = arrivals->count - arrivals->first_measured;

	return (struct samples){
		.arrivals = arrivals,
		.items = memory_touched(count, sizeof(struct sample)),
		.count = count,
	};
}

static uint64_t since_scheduled(const struct samples *samples, size_t request, uint64_t now_ns)
{
	uint64_t scheduled_ns = samples->start_ns + samples->arrivals->offsets_ns[request];

	return now_ns > scheduled_ns ? now_ns - scheduled_ns : 0;
}

void samples_begin(struct samples *samples, size_t request, uint64_t now_ns)
{
	size_t first = samples->arrivals->first_measured;

	if (request >= first)
		samples->items[request - first].queue_ns = since_scheduled(samples, request, now_ns);
}

void samples_end(struct samples *samples, size_t request, uint64_t now_ns)
{
	size_t first = samples->arrivals->first_measured;
	struct sample *sample;

	if (request < first)
		return;
	sample = &samples->items[request - first];
	sample->sojourn_ns = since_scheduled(samples, request, now_ns);
	sample->service_ns = sample->sojourn_ns - sample->queue_ns;
}

size_t samples_completed(const struct samples *samples)
{
	size_t completed = 0;

	for (size_t i = 0; i < samples->count; i++)
		completed += samples->items[i].sojourn_ns != 0;
	return completed;
}

void samples_write(const struct samples *samples, const char *path)
{
	FILE *file = output_open(path);

	for (size_t i = 0; i < samples->count; i++)
		if (samples->items[i].sojourn_ns)
			fwrite(&samples->items[i], sizeof(struct sample), 1, file);
	output_close(file, path);
}
