/* SPDX-License-Identifier: Apache-2.0 */
#include "tally.h"

void tally_init(struct tally *tally, unsigned int wake)
{
	atomic_init(&tally->served, 0);
	atomic_init(&tally->expected, SIZE_MAX); /* nobody waits yet */
	gate_init(&tally->all_served, wake);
}

void tally_add(struct tally *tally)
{
	size_t served = atomic_fetch_add(&tally->served, 1) + 1;

	if (served == atomic_load(&tally->expected))
		gate_post(&tally->all_served);
}

void tally_wait(struct tally *tally, size_t expected)
{
	/* Store, then load, against load after add in tally_add(): one of both sees the last one. */
	atomic_store(&tally->expected, expected);
	if (atomic_load(&tally->served) != expected)
		gate_wait(&tally->all_served);
}
