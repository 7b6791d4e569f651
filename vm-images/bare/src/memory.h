/* SPDX-License-Identifier: Apache-2.0 */
/* Those functions of the C library that a compiler takes for granted. */
#ifndef MEMORY_H
#define MEMORY_H

#include <stddef.h>

void *memset(void *to, int value, size_t bytes);
void *memcpy(void *to, const void *from, size_t bytes);
int memcmp(const void *one, const void *other, size_t bytes);

#endif
