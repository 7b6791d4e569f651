/* SPDX-License-Identifier: Apache-2.0 */
/* Damages text that follows the grammar, so that most of it still does. */
#ifndef MUTATE_H
#define MUTATE_H

#include "chance.h"

#include <stddef.h>

/* One damage of a random kind; the new length, at most `limit`. */
size_t mutate(struct chance *chance, char *text, size_t length, size_t limit);

#endif
