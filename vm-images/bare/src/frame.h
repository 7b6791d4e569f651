/* SPDX-License-Identifier: Apache-2.0 */
/* Ethernet frames: requests in UDP over IPv4, and the question who has our address. */
#ifndef FRAME_H
#define FRAME_H

#include <stdbool.h>
#include <stdint.h>

/* The request in it and the bytes from there on, or NULL. */
uint8_t *frame_request(uint8_t *frame, uint32_t bytes, uint32_t *room);

/* From the receiver to the sender, in place. */
void frame_turn_back(uint8_t *frame);

/* Turns an ARP request for our address into its answer, in place; false: it is none. */
bool frame_answer_arp(uint8_t *frame, uint32_t bytes);

#endif
