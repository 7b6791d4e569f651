/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BACKGROUND_H
#define BACKGROUND_H

#include "json.h"

#include <stdint.h>

#define BACKGROUND_NAME "bg"
#define LOGGER_NAME "logger"
#define PEER_NAME "peer"

struct service;

/* Work done so far by the background threads and by those they wake. */
struct background_count {
	uint64_t bursts, logger_wakes, peer_bursts;
};

void background_start(struct service *service); /* creates its threads */
struct background_count background_count(const struct service *service);
void background_close(struct service *service); /* lets them end, after stop_all() */

/* Writes the work between two counts as the object "background". */
void background_write(const struct service *service, const struct background_count *from,
		      const struct background_count *to, double cpu_s, struct json *json);

#endif
