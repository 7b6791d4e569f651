/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu.h"

#include "clock.h"
#include "memory.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct cpu_mark cpu_mark_make(const struct crew *crew)
{
	return (struct cpu_mark){.member_ns = memory_touched(crew->count, sizeof(uint64_t))};
}

/* Second in /proc/PID/schedstat (sched-stats.rst). Whatever has ended meanwhile waits no more. */
static uint64_t waited_ns_of(const char *thread)
{
	char path[64];
	uint64_t ran_ns, waited_ns = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%.20s/schedstat", thread);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%" SCNu64 " %" SCNu64, &ran_ns, &waited_ns) != 2)
		waited_ns = 0;
	fclose(file);
	return waited_ns;
}

static uint64_t waited_ns_of_all(void)
{
	DIR *threads = opendir("/proc/self/task");
	const struct dirent *entry;
	uint64_t waited_ns = 0;

	while (threads && (entry = readdir(threads)))
		if (entry->d_name[0] != '.')
			waited_ns += waited_ns_of(entry->d_name);
	if (threads)
		closedir(threads);
	return waited_ns;
}

void cpu_mark_take(struct cpu_mark *mark, const struct crew *crew)
{
	mark->at_ns = clock_now_ns();
	mark->process_ns = clock_process_cpu_ns();
	for (size_t i = 0; i < crew->count; i++)
		mark->member_ns[i] = clock_cpu_ns_of(crew->members[i].thread);
	mark->waited_ns = waited_ns_of_all();
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
	json_real(json, "waited_s", seconds_between(from->waited_ns, to->waited_ns));
	json_open_object(json, "threads");
	for (size_t i = 0; i < crew->count; i++)
		json_real(json, crew->members[i].name,
			  seconds_between(from->member_ns[i], to->member_ns[i]));
	json_close_object(json);
	json_close_object(json);
}
