/* SPDX-License-Identifier: Apache-2.0 */
/* What a virtio device needs, however it is connected. */
#ifndef VIRTIO_H
#define VIRTIO_H

#include "virtqueue.h"

#define VIRTIO_NET 1
#define VIRTIO_STATUS_OK 4 /* DRIVER_OK */
#define VIRTIO_NET_F_MAC 5
#define VIRTIO_F_VERSION_1 32

struct virtio {
	const struct virtio_transport *transport;
	uint64_t base;
	const uint8_t *config; /* the kind's own registers */
	uint64_t notify[2];    /* by queue, where the transport has a place for each */
};

struct virtio_transport {
	/* Finds the network card, takes these features and COUNT queues; false: there is none, or it refuses. */
	bool (*open)(struct virtio *device, uint64_t features, struct virtqueue *queues, uint32_t count);
	/* From here on it works. */
	void (*run)(struct virtio *device);
	void (*notify)(struct virtio *device, uint32_t queue);
	/* Its interrupt line falls only then. */
	void (*acknowledge)(struct virtio *device);
};

extern const struct virtio_transport virtio_mmio, virtio_pci;

#endif
