/* SPDX-License-Identifier: Apache-2.0 */
#include "mutate.h"

#include <string.h>

static const char *const words[] = {
	"weight",
	"granularity_ns",
	"default",
	" ",
	"\n",
	"\n\n",
	"-",
	"+",
	"0",
	"1",
	"2",
	"262144",
	"262145",
	"1000000000",
	"1000000001",
	"4294967295",
	"4294967296",
	"18446744073709551616",
	"0x10",
	"1e3",
	"\t",
	"\r",
	"\xff",
	"%s%n",
	"weight weight",
	"1 weight 5\n",
};

static size_t insert(char *text, size_t length, size_t limit, size_t at, const char *what,
		     size_t size)
{
	if (length + size > limit)
		return length;
	memmove(text + at + size, text + at, length - at);
	memcpy(text + at, what, size);
	return length + size;
}

static size_t cut(char *text, size_t length, size_t at, size_t size)
{
	if (size > length - at)
		size = length - at;
	memmove(text + at, text + at + size, length - at - size);
	return length - size;
}

size_t mutate(struct chance *chance, char *text, size_t length, size_t limit)
{
	size_t at = length ? chance_below(chance, (unsigned)length) : 0;
	const char *word = words[chance_below(chance, sizeof(words) / sizeof(words[0]))];
	char byte = (char)chance_next(chance), copy[16];
	size_t size = 1 + chance_below(chance, sizeof(copy));

	switch (length ? chance_below(chance, 7) : 0) {
	case 0:
		return insert(text, length, limit, at, word, strlen(word));
	case 1:
		return cut(text, length, at, size);
	case 2:
		return cut(text, length, at, 1);
	case 3:
		text[at] = byte;
		return length;
	case 4:
		text[at] ^= (char)(1 << chance_below(chance, 8));
		return length;
	case 5:
		if (size > length - at)
			size = length - at;
		memcpy(copy, text + at, size);
		return insert(text, length, limit, chance_below(chance, (unsigned)length), copy,
			      size);
	default:
		return at;
	}
}
