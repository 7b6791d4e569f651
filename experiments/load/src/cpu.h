/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CPU_H
#define CPU_H

#include "crew.h"

/* CPU time of the process and of each of its threads at one moment, and for how long all of them were
   ready and waited for a CPU. */
struct cpu_mark {
	uint64_t at_ns, process_ns, waited_ns;
	uint64_t *member_ns;
};

struct cpu_mark cpu_mark_make(const struct crew *crew);
void cpu_mark_take(struct cpu_mark *mark, const struct crew *crew);

/* CPU seconds between two marks of the threads whose name begins with the prefix. */
double cpu_seconds_of(const struct crew *crew, const struct cpu_mark *from,
		      const struct cpu_mark *to, const char *prefix);

/* Writes {"window_s": .., "total_s": .., "waited_s": .., "threads": {"main": ..}} as the object "cpu". */
void cpu_write(const struct crew *crew, const struct cpu_mark *from, const struct cpu_mark *to,
	       struct json *json);

#endif
