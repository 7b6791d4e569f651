/* SPDX-License-Identifier: Apache-2.0 */
/* memcached's ASCII protocol in datagrams; README.md says which commands. memcached_load (job.h) serves it. */
#ifndef MEMCACHED_H
#define MEMCACHED_H

#define MEMCACHED_PORT 11211
#define MEMCACHED_HEADER 8 /* two bytes each: the client's number, which datagram, of how many, and nothing */

#endif
