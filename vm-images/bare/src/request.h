/* SPDX-License-Identifier: Apache-2.0 */
/* What a client sends by UDP, and gets back as it was; guests/bare/client.py and
 * experiments/load/src/mc_bare.c have the same layout. */
#ifndef REQUEST_H
#define REQUEST_H

#include <stdint.h>

#define REQUEST_MAGIC 0x45524142 /* "BARE" */

enum kind { KIND_SINGLE, KIND_FANOUT, KIND_PIPELINE, KIND_CONVOY, KINDS, KIND_STATISTICS = 255 };

struct request {
	uint32_t magic;
	uint32_t id;           /* statistics: of which vCPU; the answer has them behind the request */
	uint32_t kind;
	uint32_t serial_us;    /* on vCPU 0, first */
	uint32_t helper_us;    /* on each helper that takes part */
	uint32_t straggler_us; /* more on the first helper (fan-out), on the middle stage (pipeline) */
	uint32_t lock_us;      /* under the lock (convoy) */
	uint32_t tail_us;      /* on vCPU 0, last */
	uint64_t stamp;        /* the client's own */
};

_Static_assert(sizeof(struct request) == 40, "guests/bare/client.py");

#endif
