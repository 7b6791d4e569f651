/* SPDX-License-Identifier: Apache-2.0 */
/* A split queue of virtio 1.0. */
#ifndef VIRTQUEUE_H
#define VIRTQUEUE_H

#include <stdbool.h>
#include <stdint.h>

#define QUEUE_SIZE 256
#define DESCRIPTOR_WRITE 2
#define USED_NO_NOTIFY 1

struct virtqueue {
	struct {
		uint64_t address;
		uint32_t bytes;
		uint16_t flags, next;
	} descriptors[QUEUE_SIZE];
	struct {
		uint16_t flags, index, ring[QUEUE_SIZE], event;
	} available;
	struct {
		uint16_t flags, index;
		struct {
			uint32_t id, bytes;
		} ring[QUEUE_SIZE];
	} used __attribute__((aligned(4096)));
	uint16_t seen; /* of used */
} __attribute__((aligned(4096)));

/* Gives the device a buffer; says whether it wants to be told. */
bool virtqueue_offer(struct virtqueue *queue, uint16_t id);

/* Takes a buffer that the device is done with, if there is one. */
bool virtqueue_take(struct virtqueue *queue, uint16_t *id, uint32_t *bytes);

#endif
