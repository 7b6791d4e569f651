/* SPDX-License-Identifier: Apache-2.0 */
/* virtio 1.0 on the memory bus, as QEMU's machine microvm has it. */
#include "lapic.h"
#include "options.h"
#include "virtio.h"

#define SLOTS MMIO(0xfeb00000)
#define SLOT_BYTES 512
#define SLOT_COUNT 8
#define IOAPIC MMIO(0xfec00000)
#define IOAPIC_DATA 0x10
#define IOAPIC_ENTRY 0x10

#define MAGIC 0x74726976

enum mmio_register {
	REG_MAGIC = 0x00, REG_KIND = 0x08, REG_FEATURES = 0x20, REG_FEATURES_WORD = 0x24,
	REG_QUEUE = 0x30, REG_QUEUE_MAX = 0x34, REG_QUEUE_SIZE = 0x38, REG_QUEUE_READY = 0x44,
	REG_NOTIFY = 0x50, REG_INTERRUPTS = 0x60, REG_ACKNOWLEDGE = 0x64, REG_STATUS = 0x70,
	REG_DESCRIPTORS = 0x80, REG_AVAILABLE = 0x90, REG_USED = 0xa0, REG_CONFIG = 0x100,
};

enum status { STATUS_SEEN = 1, STATUS_DRIVER = 2, STATUS_FEATURES = 8 };

static volatile uint32_t *reg(const struct virtio *device, uint32_t offset)
{
	return mmio(device->base + offset);
}

static void write_address(const struct virtio *device, uint32_t offset, const volatile void *address)
{
	*reg(device, offset) = (uint32_t)(uint64_t)address;
	*reg(device, offset + 4) = 0;
}

static bool offer_queue(const struct virtio *device, struct virtqueue *queue, uint32_t number)
{
	*reg(device, REG_QUEUE) = number;
	if (*reg(device, REG_QUEUE_MAX) < QUEUE_SIZE)
		return false;
	*reg(device, REG_QUEUE_SIZE) = QUEUE_SIZE;
	write_address(device, REG_DESCRIPTORS, queue->descriptors);
	write_address(device, REG_AVAILABLE, &queue->available);
	write_address(device, REG_USED, &queue->used);
	*reg(device, REG_QUEUE_READY) = 1;
	return true;
}

static bool agree(const struct virtio *device, uint64_t features)
{
	*reg(device, REG_STATUS) = 0;
	*reg(device, REG_STATUS) = STATUS_SEEN | STATUS_DRIVER;
	for (uint32_t word = 0; word < 2; word++) {
		*reg(device, REG_FEATURES_WORD) = word;
		*reg(device, REG_FEATURES) = (uint32_t)(features >> 32 * word);
	}
	*reg(device, REG_STATUS) = STATUS_SEEN | STATUS_DRIVER | STATUS_FEATURES;
	return *reg(device, REG_STATUS) & STATUS_FEATURES;
}

/* To vCPU 0, at the edge of the line. */
static void route_interrupt(uint32_t line)
{
	*mmio(IOAPIC) = IOAPIC_ENTRY + 2 * line + 1;
	*mmio(IOAPIC + IOAPIC_DATA) = 0;
	*mmio(IOAPIC) = IOAPIC_ENTRY + 2 * line;
	*mmio(IOAPIC + IOAPIC_DATA) = VECTOR_DEVICE;
}

static bool open_card(struct virtio *device, uint64_t features, struct virtqueue *queues, uint32_t count)
{
	uint32_t slot = 0;

	for (; slot < SLOT_COUNT; slot++) {
		device->base = SLOTS + SLOT_BYTES * slot;
		if (*reg(device, REG_MAGIC) == MAGIC && *reg(device, REG_KIND) == VIRTIO_NET)
			break;
	}
	if (slot == SLOT_COUNT || !agree(device, features))
		return false;
	for (uint32_t number = 0; number < count; number++)
		if (!offer_queue(device, &queues[number], number))
			return false;
	device->config = (const uint8_t *)(device->base + REG_CONFIG);
	route_interrupt((uint32_t)options.interrupt + slot);
	return true;
}

static void run(struct virtio *device)
{
	*reg(device, REG_STATUS) = STATUS_SEEN | STATUS_DRIVER | STATUS_FEATURES | VIRTIO_STATUS_OK;
}

static void notify(struct virtio *device, uint32_t queue)
{
	*reg(device, REG_NOTIFY) = queue;
}

static void acknowledge(struct virtio *device)
{
	*reg(device, REG_ACKNOWLEDGE) = *reg(device, REG_INTERRUPTS);
}

const struct virtio_transport virtio_mmio = {
	.open = open_card, .run = run, .notify = notify, .acknowledge = acknowledge,
};
