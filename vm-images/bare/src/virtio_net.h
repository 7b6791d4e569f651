/* SPDX-License-Identifier: Apache-2.0 */
/* The network card: vCPU 0's alone. */
#ifndef VIRTIO_NET_H
#define VIRTIO_NET_H

#include "virtqueue.h"

#include <stddef.h>

void virtio_net_start(void);

/* After each interrupt, also where nothing came: the next one is not told before. */
void virtio_net_acknowledge(void);

/* A frame that came lies in its slot until it is released. */
bool virtio_net_receive(uint16_t *slot, uint32_t *bytes);
uint8_t *virtio_net_frame(uint16_t slot);
void virtio_net_release(uint16_t slot);

/* A copy of the frame; dropped where the card is that far behind. */
void virtio_net_send(const uint8_t *frame, uint32_t bytes);

const uint8_t *virtio_net_address(void);

#endif
