/* SPDX-License-Identifier: Apache-2.0 */
#include "frame.h"

#include "memory.h"
#include "options.h"
#include "virtio_net.h"

#define MAC 6
#define ETHERNET_TO 0
#define ETHERNET_FROM 6
#define ETHERNET_TYPE 12
#define IP 14
#define IP_TOTAL (IP + 2)
#define IP_OFFSET_FLAGS (IP + 6)
#define IP_PROTOCOL (IP + 9)
#define IP_CHECKSUM (IP + 10)
#define IP_FROM (IP + 12)
#define IP_TO (IP + 16)
#define IP_BYTES 4
#define UDP (IP + 20)
#define UDP_FROM UDP
#define UDP_TO (UDP + 2)
#define UDP_LENGTH (UDP + 4)
#define UDP_CHECKSUM (UDP + 6)
#define PORT_BYTES 2
#define PAYLOAD (UDP + 8)
#define PROTOCOL_UDP 17
#define VERSION_AND_HEADER 0x45 /* version 4, a header without options */

#define ARP_OPERATION (14 + 6)
#define ARP_FROM_MAC (14 + 8)
#define ARP_FROM_IP (14 + 14)
#define ARP_TO_MAC (14 + 18)
#define ARP_TO_IP (14 + 24)
#define ARP_END (14 + 28)

static const uint8_t type_ip[] = {0x08, 0x00}, type_arp[] = {0x08, 0x06};
static const uint8_t arp_request[] = {0, 1}, arp_answer[] = {0, 2};

static void swap(uint8_t *one, uint8_t *other, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++) {
		uint8_t kept = one[i];

		one[i] = other[i];
		other[i] = kept;
	}
}

static bool is_fragment(const uint8_t *frame)
{
	return (frame[IP_OFFSET_FLAGS] & 0x3f) || frame[IP_OFFSET_FLAGS + 1];
}

static uint16_t read16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static void write16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

bool frame_datagram(uint8_t *frame, uint32_t bytes, struct datagram *datagram)
{
	uint32_t total, length;

	if (bytes < PAYLOAD || memcmp(frame + ETHERNET_TYPE, type_ip, sizeof(type_ip)))
		return false;
	if (frame[IP] != VERSION_AND_HEADER || frame[IP_PROTOCOL] != PROTOCOL_UDP || is_fragment(frame))
		return false;
	total = read16(frame + IP_TOTAL);
	length = read16(frame + UDP_LENGTH);
	if (IP + total > bytes || UDP - IP + length > total || length < PAYLOAD - UDP)
		return false;
	*datagram = (struct datagram){frame + PAYLOAD, length - (PAYLOAD - UDP), read16(frame + UDP_TO)};
	return true;
}

static void sum_ip_header(uint8_t *frame)
{
	uint32_t sum = 0;

	write16(frame + IP_CHECKSUM, 0);
	for (uint32_t at = IP; at < UDP; at += 2)
		sum += read16(frame + at);
	sum = (sum & 0xffff) + (sum >> 16);
	write16(frame + IP_CHECKSUM, ~(sum + (sum >> 16)));
}

/* The sum of UDP may be left out. */
uint32_t frame_turn_back(uint8_t *frame, uint32_t payload_bytes)
{
	swap(frame + ETHERNET_TO, frame + ETHERNET_FROM, MAC);
	swap(frame + IP_FROM, frame + IP_TO, IP_BYTES);
	swap(frame + UDP_FROM, frame + UDP_TO, PORT_BYTES);
	write16(frame + IP_TOTAL, PAYLOAD - IP + payload_bytes);
	write16(frame + UDP_LENGTH, PAYLOAD - UDP + payload_bytes);
	write16(frame + UDP_CHECKSUM, 0);
	sum_ip_header(frame);
	return PAYLOAD + payload_bytes;
}

bool frame_answer_arp(uint8_t *frame, uint32_t bytes)
{
	if (bytes < ARP_END || memcmp(frame + ETHERNET_TYPE, type_arp, sizeof(type_arp)))
		return false;
	if (memcmp(frame + ARP_OPERATION, arp_request, sizeof(arp_request)) ||
	    memcmp(frame + ARP_TO_IP, options.address, IP_BYTES))
		return false;
	memcpy(frame + ARP_OPERATION, arp_answer, sizeof(arp_answer));
	memcpy(frame + ARP_TO_MAC, frame + ARP_FROM_MAC, MAC);
	swap(frame + ARP_TO_IP, frame + ARP_FROM_IP, IP_BYTES);
	memcpy(frame + ARP_FROM_MAC, virtio_net_address(), MAC);
	memcpy(frame + ETHERNET_TO, frame + ARP_TO_MAC, MAC);
	memcpy(frame + ETHERNET_FROM, virtio_net_address(), MAC);
	return true;
}
