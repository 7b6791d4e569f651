/* SPDX-License-Identifier: Apache-2.0 */
#include "memory.h"

#include "fail.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

void *memory_touched(size_t count, size_t item_bytes)
{
	size_t bytes = count * item_bytes;
	/* The process lives as long as its one run, so nothing gives this memory back. */
	void *memory = mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (memory == MAP_FAILED)
		fail_run("cannot allocate %zu bytes: %s", bytes, strerror(errno));
	return memory;
}
