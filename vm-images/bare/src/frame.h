/* SPDX-License-Identifier: Apache-2.0 */
/* Ethernet frames: datagrams of UDP over IPv4, and the question who has our address. */
#ifndef FRAME_H
#define FRAME_H

#include <stdbool.h>
#include <stdint.h>

#define FRAME_MOST_PAYLOAD 1472 /* of UDP, in one packet of 1500 bytes; a slot (virtio_net.h) has room for it */

struct datagram {
	uint8_t *payload;
	uint32_t bytes; /* of the payload, without what pads a short frame */
	uint16_t port;  /* to which it was sent */
};

/* What lies in it; false: no datagram, or not all of one. */
bool frame_datagram(uint8_t *frame, uint32_t bytes, struct datagram *datagram);

/* From the receiver to the sender, in place, with so much payload; returns the frame's bytes. */
uint32_t frame_turn_back(uint8_t *frame, uint32_t payload_bytes);

/* Turns an ARP request for our address into its answer, in place; false: it is none. */
bool frame_answer_arp(uint8_t *frame, uint32_t bytes);

#endif
