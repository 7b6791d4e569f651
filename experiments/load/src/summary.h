/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SUMMARY_H
#define SUMMARY_H

#include "json.h"

#include <stddef.h>
#include <stdint.h>

/* Sorts the values and writes {count, mean, min, p50, .. max}; a statistic of nothing is null. */
void summary_write(struct json *json, const char *key, uint64_t *values, size_t count);

#endif
