/* SPDX-License-Identifier: Apache-2.0 */
#include "virtio_net.h"

#include "memory.h"
#include "virtio.h"

#define RECEIVE 0
#define SEND 1
#define HEADER 12 /* struct virtio_net_hdr with num_buffers */
#define BUFFER 2048
#define MAC 6
#define NO_INTERRUPT 1

static struct virtio card;
static bool present;
static struct virtqueue queues[2];
static uint8_t received[QUEUE_SIZE][BUFFER], sent[QUEUE_SIZE][BUFFER];
static uint8_t address[MAC];

static bool find_card(void)
{
	static const struct virtio_transport *const transports[] = {&virtio_mmio, &virtio_pci};
	const uint64_t features = 1ul << VIRTIO_F_VERSION_1 | 1ul << VIRTIO_NET_F_MAC;

	for (unsigned int i = 0; i < sizeof(transports) / sizeof(transports[0]); i++) {
		card.transport = transports[i];
		if (card.transport->open(&card, features, queues, 2))
			return true;
	}
	return false;
}

void virtio_net_start(void)
{
	if (!(present = find_card()))
		return;
	for (unsigned int i = 0; i < MAC; i++)
		address[i] = ((const volatile uint8_t *)card.config)[i];
	queues[SEND].available.flags = NO_INTERRUPT;
	card.transport->run(&card);
	for (uint16_t slot = 0; slot < QUEUE_SIZE; slot++) {
		queues[RECEIVE].descriptors[slot].address = (uint64_t)received[slot];
		queues[RECEIVE].descriptors[slot].bytes = BUFFER;
		queues[RECEIVE].descriptors[slot].flags = DESCRIPTOR_WRITE;
		queues[SEND].descriptors[slot].address = (uint64_t)sent[slot];
		virtqueue_offer(&queues[RECEIVE], slot);
	}
	card.transport->notify(&card, RECEIVE);
}

void virtio_net_acknowledge(void)
{
	if (present)
		card.transport->acknowledge(&card);
}

bool virtio_net_receive(uint16_t *slot, uint32_t *bytes)
{
	if (!virtqueue_take(&queues[RECEIVE], slot, bytes))
		return false;
	*bytes = *bytes > HEADER ? *bytes - HEADER : 0;
	return true;
}

uint8_t *virtio_net_frame(uint16_t slot)
{
	return received[slot] + HEADER;
}

void virtio_net_release(uint16_t slot)
{
	if (virtqueue_offer(&queues[RECEIVE], slot))
		card.transport->notify(&card, RECEIVE);
}

void virtio_net_send(const uint8_t *frame, uint32_t bytes)
{
	struct virtqueue *queue = &queues[SEND];
	uint16_t slot = queue->available.index % QUEUE_SIZE;
	uint16_t done = __atomic_load_n(&queue->used.index, __ATOMIC_SEQ_CST);

	if ((uint16_t)(queue->available.index - done) >= QUEUE_SIZE)
		return;
	memset(sent[slot], 0, HEADER);
	memcpy(sent[slot] + HEADER, frame, bytes);
	queue->descriptors[slot].bytes = HEADER + bytes;
	if (virtqueue_offer(queue, slot))
		card.transport->notify(&card, SEND);
}

const uint8_t *virtio_net_address(void)
{
	return address;
}
