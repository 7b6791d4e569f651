/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DISTRIBUTION_H
#define DISTRIBUTION_H

#include "rng.h"

enum distribution_shape { SHAPE_EXP, SHAPE_FIXED, SHAPE_LOGNORMAL };

extern const char *const distribution_names[]; /* in the order of the enum, NULL at the end */

/* Draws a positive number with this mean; sigma is the lognormal's (of the logarithm). */
double distribution_draw(struct rng *rng, unsigned int shape, double sigma, double mean);

#endif
