/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu.h"

#include "clock.h"
#include "memory.h"

#include <string.h>

struct cpu_mark cpu_mark_make(const struct crew *crew)
{
	return (struct cpu_mark){.member_ns = memory_touched(crew->count, sizeof(uint64_t))};
}

void cpu_mark_take(struct cpu_mark *mark, const struct crew *crew)
{
	mark->at_ns = clock_now_ns();
	mark->process_ns = clock_process_cpu_ns();
	for (size_t i = 0; i < crew->count; i++)
		mark->member_ns[i] = clock_cpu_ns_of(crew->members[i].thread);
}

static double seconds_between(uint64_t from_ns, uint64_t to_ns)
{
	return (double)(to_ns - from_ns) / (double)NS_PER_S;
}

double cpu_seconds_of(const struct crew *crew, const struct cpu_mark *from,
		      const struct cpu_mark *to, const char *prefix)
{
	double seconds = 0.0;

	for (size_t i = 0; i < crew->count; i++)
		if (!strncmp(crew->members[i].name, prefix, strlen(prefix)))
			seconds += seconds_between(from->member_ns[i], to->member_ns[i]);
	return seconds;
}

void cpu_write(const struct crew *crew, const struct cpu_mark *from, const struct cpu_mark *to,
	       struct json *json)
{
	json_open_object(json, "cpu");
	json_real(json, "window_s", seconds_between(from->at_ns, to->at_ns));
	json_real(json, "total_s", seconds_between(from->process_ns, to->process_ns));
	json_open_object(json, "threads");
	for (size_t i = 0; i < crew->count; i++)
		json_real(json, crew->members[i].name,
			  seconds_between(from->member_ns[i], to->member_ns[i]));
	json_close_object(json);
	json_close_object(json);
}
