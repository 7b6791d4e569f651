/* SPDX-License-Identifier: Apache-2.0 */
#include "virtqueue.h"

bool virtqueue_offer(struct virtqueue *queue, uint16_t id)
{
	uint16_t index = queue->available.index;

	queue->available.ring[index % QUEUE_SIZE] = id;
	__atomic_store_n(&queue->available.index, (uint16_t)(index + 1), __ATOMIC_SEQ_CST);
	return !(__atomic_load_n(&queue->used.flags, __ATOMIC_SEQ_CST) & USED_NO_NOTIFY);
}

bool virtqueue_take(struct virtqueue *queue, uint16_t *id, uint32_t *bytes)
{
	uint16_t entry = queue->seen % QUEUE_SIZE;

	if (queue->seen == __atomic_load_n(&queue->used.index, __ATOMIC_SEQ_CST))
		return false;
	*id = (uint16_t)queue->used.ring[entry].id;
	*bytes = queue->used.ring[entry].bytes;
	queue->seen++;
	return true;
}
