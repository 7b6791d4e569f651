/* SPDX-License-Identifier: Apache-2.0 */
/* For a few instructions: whoever waits computes meanwhile. */
#ifndef SPIN_H
#define SPIN_H

#include <stdint.h>

static inline void spin_lock(uint32_t *lock)
{
	while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE))
		asm volatile("pause");
}

static inline void spin_unlock(uint32_t *lock)
{
	__atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

#endif
