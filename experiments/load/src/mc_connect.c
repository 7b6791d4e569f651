/* SPDX-License-Identifier: Apache-2.0 */
#include "mc_connect.h"

#include "fail.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void make_non_blocking(int fd)
{
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static struct addrinfo *resolve(const char *name, const char *host, const char *port, int type)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = type};
	struct addrinfo *found;
	int error = getaddrinfo(host, port, &hints, &found);

	if (error)
		fail_run("%s %s:%s: %s", name, host, port, gai_strerror(error));
	return found;
}

static int try_addresses(const struct addrinfo *address)
{
	int fd = -1;

	for (; address; address = address->ai_next) {
		fd = socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC, 0);
		if (fd >= 0 && connect(fd, address->ai_addr, address->ai_addrlen) == 0)
			return fd;
		if (fd >= 0)
			close(fd);
	}
	return -1;
}

static int connect_to(const char *name, const char *host, uint64_t port, int type)
{
	char text[8];
	struct addrinfo *addresses;
	int fd;

	snprintf(text, sizeof(text), "%" PRIu16, (uint16_t)port);
	addresses = resolve(name, host, text, type);
	fd = try_addresses(addresses);
	if (fd < 0)
		fail_run("%s %s:%s: %s", name, host, text, strerror(errno));
	freeaddrinfo(addresses);
	make_non_blocking(fd);
	return fd;
}

int mc_connect_tcp(const char *name, const char *host, uint64_t port)
{
	int fd = connect_to(name, host, port, SOCK_STREAM), one = 1;

	/* A small request must not wait for the acknowledgement of the one before it. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

int mc_connect_udp(const char *name, const char *host, uint64_t port)
{
	return connect_to(name, host, port, SOCK_DGRAM);
}

int mc_connect_unix(const char *name, const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (strlen(path) >= sizeof(address.sun_path))
		fail_option("unix", "must be shorter than %zu bytes, got '%s'",
			    sizeof(address.sun_path), path);
	strcpy(address.sun_path, path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
		fail_run("%s %s: %s", name, path, strerror(errno));
	make_non_blocking(fd);
	return fd;
}
