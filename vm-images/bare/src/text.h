/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that lie in somebody else's memory, as in a frame; nothing ends them but their number. */
#ifndef TEXT_H
#define TEXT_H

#include <stdbool.h>
#include <stdint.h>

struct text {
	const uint8_t *at;
	uint32_t bytes;
};

/* Takes the first line, without its end; false: nothing ends one. */
bool text_line(struct text *rest, struct text *line);

/* Takes the first word; an empty one where there is no more. */
struct text text_word(struct text *line);

bool text_is(struct text word, const char *name);

/* Decimal digits and nothing else, that fit. */
bool text_number(struct text word, uint32_t *number);

#endif
