/* SPDX-License-Identifier: Apache-2.0 */
#include "memory.h"

void *memset(void *to, int value, size_t bytes)
{
	void *start = to;

	asm volatile("rep stosb" : "+D"(to), "+c"(bytes) : "a"(value) : "memory");
	return start;
}

void *memcpy(void *to, const void *from, size_t bytes)
{
	void *start = to;

	asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
	return start;
}

int memcmp(const void *one, const void *other, size_t bytes)
{
	const unsigned char *a = one, *b = other;

	for (; bytes; bytes--, a++, b++)
		if (*a != *b)
			return *a - *b;
	return 0;
}
