/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MC_CONNECT_H
#define MC_CONNECT_H

#include <stdint.h>

/* A connected non-blocking socket, or one line, which begins with the name, and exit 1. */
int mc_connect_tcp(const char *name, const char *host, uint64_t port);
int mc_connect_udp(const char *name, const char *host, uint64_t port);
int mc_connect_unix(const char *name, const char *path);

#endif
