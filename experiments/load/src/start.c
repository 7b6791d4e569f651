/* SPDX-License-Identifier: Apache-2.0 */
#include "start.h"

#include "fail.h"

#include <inttypes.h>
#include <stdio.h>

uint64_t start_read(void)
{
	uint64_t start_ns;

	if (scanf("%" SCNu64, &start_ns) != 1 || !start_ns)
		fail_run("--start-on-stdin: standard input has no time of the start");
	return start_ns;
}
