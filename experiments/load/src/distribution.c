/* SPDX-License-Identifier: Apache-2.0 */
#include "distribution.h"

#include <math.h>
#include <stddef.h>

const char *const distribution_names[] = {"exp", "fixed", "lognormal", NULL};

static double standard_normal(struct rng *rng)
{
	double radius = sqrt(-2.0 * log(rng_unit(rng)));

	return radius * cos(2.0 * M_PI * rng_unit(rng));
}

double distribution_draw(struct rng *rng, unsigned int shape, double sigma, double mean)
{
	switch (shape) {
	case SHAPE_EXP:
		return -mean * log(rng_unit(rng));
	case SHAPE_LOGNORMAL:
		/* exp(sigma^2 / 2) is the mean of the raw draw: divided out, so that `mean` is the mean. */
		return mean * exp(sigma * standard_normal(rng) - sigma * sigma / 2.0);
	default:
		return mean;
	}
}
