/* SPDX-License-Identifier: Apache-2.0 */
/* virtio 1.0 on PCI, as QEMU's machines pc and q35 and libvirt have it. All but notifying is done at CPL 0. */
#include "lapic.h"
#include "ports.h"
#include "virtio.h"

#define ADDRESS_PORT 0xcf8
#define DATA_PORT 0xcfc
#define BUSES 16 /* libvirt puts a card behind one of some bridges */
#define DEVICES 32
#define CARD_MODERN 0x10411af4
#define CARD_TRANSITIONAL 0x10001af4

#define COMMAND 0x04
#define COMMAND_ON 0x406 /* memory, bus master, no interrupt by line */
#define STATUS_CAPABILITIES (1u << 20)
#define BARS 0x10
#define BAR_64 4
#define CAPABILITIES 0x34
#define CAPABILITY_MSIX 0x11
#define CAPABILITY_VENDOR 0x09
#define MSIX_ON (1u << 31)
#define MSIX_MASKED (1u << 30)
#define MOST_CAPABILITIES 32
#define LOWEST_MAPPED 0xc0000000 /* layout.h */

enum part { PART_COMMON = 1, PART_NOTIFY = 2, PART_DEVICE = 4, PARTS };

enum common_register {
	COMMON_FEATURES_WORD = 8, COMMON_FEATURES = 12, COMMON_STATUS = 20, COMMON_QUEUE = 22, COMMON_SIZE = 24,
	COMMON_VECTOR = 26, COMMON_ENABLE = 28, COMMON_NOTIFY = 30, COMMON_DESCRIPTORS = 32, COMMON_AVAILABLE = 40,
	COMMON_USED = 48,
};

enum status { STATUS_SEEN = 1, STATUS_DRIVER = 2, STATUS_FEATURES = 8 };

struct found {
	uint64_t part[PARTS], msix_table;
	uint32_t notify_step, msix;
};

static uint32_t config_read(uint32_t card, uint32_t offset)
{
	port_write32(ADDRESS_PORT, 1u << 31 | card << 11 | (offset & 0xfc));
	return port_read32(DATA_PORT);
}

static void config_write(uint32_t card, uint32_t offset, uint32_t value)
{
	port_write32(ADDRESS_PORT, 1u << 31 | card << 11 | (offset & 0xfc));
	port_write32(DATA_PORT, value);
}

static volatile uint8_t *byte_at(uint64_t address)
{
	return (volatile uint8_t *)address;
}

static volatile uint16_t *half_at(uint64_t address)
{
	return (volatile uint16_t *)address;
}

/* Where we see what the firmware placed there; 0 if we do not. */
static uint64_t bar(uint32_t card, uint32_t number)
{
	uint32_t low = config_read(card, BARS + 4 * number);

	if ((low & BAR_64 && config_read(card, BARS + 4 * number + 4)) || low < LOWEST_MAPPED)
		return 0;
	return MMIO((uint64_t)(low & ~0xfu));
}

static void note(struct found *found, uint32_t card, uint32_t at)
{
	uint32_t head = config_read(card, at), part = head >> 24;
	uint64_t base;

	if ((head & 0xff) == CAPABILITY_MSIX) {
		uint32_t table = config_read(card, at + 4);

		found->msix = at;
		base = bar(card, table & 7);
		found->msix_table = base ? base + (table & ~7u) : 0;
	} else if ((head & 0xff) == CAPABILITY_VENDOR && part < PARTS) {
		base = bar(card, config_read(card, at + 4) & 0xff);
		found->part[part] = base ? base + config_read(card, at + 8) : 0;
		if (part == PART_NOTIFY)
			found->notify_step = config_read(card, at + 16);
	}
}

static bool read_capabilities(struct found *found, uint32_t card)
{
	uint32_t at = config_read(card, CAPABILITIES) & 0xfc;

	if (!(config_read(card, COMMAND) & STATUS_CAPABILITIES))
		return false;
	for (unsigned int i = 0; at && i < MOST_CAPABILITIES; i++) {
		note(found, card, at);
		at = config_read(card, at) >> 8 & 0xfc;
	}
	return found->part[PART_COMMON] && found->part[PART_NOTIFY] && found->part[PART_DEVICE] && found->msix_table;
}

/* Entry 0, to vCPU 0. */
static void route_interrupt(const struct found *found, uint32_t card)
{
	volatile uint32_t *entry = mmio(found->msix_table);

	config_write(card, COMMAND, config_read(card, COMMAND) | COMMAND_ON);
	config_write(card, found->msix, (config_read(card, found->msix) | MSIX_ON) & ~MSIX_MASKED);
	entry[0] = 0xfee00000;
	entry[1] = 0;
	entry[2] = VECTOR_DEVICE;
	entry[3] = 0;
}

static bool agree(const struct virtio *device, uint64_t features)
{
	volatile uint8_t *status = byte_at(device->base + COMMON_STATUS);

	*status = 0;
	*status = STATUS_SEEN | STATUS_DRIVER;
	for (uint32_t word = 0; word < 2; word++) {
		*mmio(device->base + COMMON_FEATURES_WORD) = word;
		*mmio(device->base + COMMON_FEATURES) = (uint32_t)(features >> 32 * word);
	}
	*status = STATUS_SEEN | STATUS_DRIVER | STATUS_FEATURES;
	return *status & STATUS_FEATURES;
}

static void write_address(uint64_t at, const volatile void *address)
{
	*mmio(at) = (uint32_t)(uint64_t)address;
	*mmio(at + 4) = 0;
}

static bool offer_queue(struct virtio *device, const struct found *found, struct virtqueue *queue, uint32_t number)
{
	*half_at(device->base + COMMON_QUEUE) = (uint16_t)number;
	if (*half_at(device->base + COMMON_SIZE) < QUEUE_SIZE)
		return false;
	*half_at(device->base + COMMON_SIZE) = QUEUE_SIZE;
	*half_at(device->base + COMMON_VECTOR) = 0;
	write_address(device->base + COMMON_DESCRIPTORS, queue->descriptors);
	write_address(device->base + COMMON_AVAILABLE, &queue->available);
	write_address(device->base + COMMON_USED, &queue->used);
	*half_at(device->base + COMMON_ENABLE) = 1;
	device->notify[number] = found->part[PART_NOTIFY]
		+ (uint64_t)found->notify_step * *half_at(device->base + COMMON_NOTIFY);
	return *half_at(device->base + COMMON_VECTOR) == 0;
}

static bool find(uint32_t *card)
{
	for (*card = 0; *card < BUSES * DEVICES; ++*card) {
		uint32_t kind = config_read(*card, 0);

		if (kind == CARD_MODERN || kind == CARD_TRANSITIONAL)
			return true;
	}
	return false;
}

static bool open_card(struct virtio *device, uint64_t features, struct virtqueue *queues, uint32_t count)
{
	struct found found = {0};
	uint32_t card;

	if (!find(&card) || !read_capabilities(&found, card))
		return false;
	route_interrupt(&found, card);
	device->base = found.part[PART_COMMON];
	device->config = (const uint8_t *)found.part[PART_DEVICE];
	if (!agree(device, features))
		return false;
	for (uint32_t number = 0; number < count; number++)
		if (!offer_queue(device, &found, &queues[number], number))
			return false;
	return true;
}

static void run(struct virtio *device)
{
	*byte_at(device->base + COMMON_STATUS) = STATUS_SEEN | STATUS_DRIVER | STATUS_FEATURES | VIRTIO_STATUS_OK;
}

static void notify(struct virtio *device, uint32_t queue)
{
	*half_at(device->notify[queue]) = (uint16_t)queue;
}

/* A message has no line that would have to fall. */
static void acknowledge(struct virtio *device)
{
	(void)device;
}

const struct virtio_transport virtio_pci = {
	.open = open_card, .run = run, .notify = notify, .acknowledge = acknowledge,
};
