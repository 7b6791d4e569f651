/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEMORY_H
#define MEMORY_H

#include <stddef.h>

/* Zeroed memory for count items whose pages exist already: using it never faults. */
void *memory_touched(size_t count, size_t item_bytes);

#endif
