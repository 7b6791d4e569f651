/* SPDX-License-Identifier: Apache-2.0 */
#include "mc_client.h"

#include "clock.h"
#include "fail.h"
#include "mc_connect.h"
#include "memory.h"
#include "stop.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define EVENTS 64

/* The stop eventfd has no connection. */
#define NO_CONNECTION UINT64_MAX

static void watch(int epoll_fd, int fd, uint32_t events, uint64_t connection)
{
	struct epoll_event event = {.events = events, .data.u64 = connection};

	if (fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		fail_run("cannot watch a socket: %s", strerror(errno));
}

void mc_client_connect(struct mc_client *client)
{
	const struct mc_options *o = &client->options;
	int stop_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	client->largest_request = MC_COMMAND_BYTES + o->value_bytes.high;
	client->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	watch(client->epoll_fd, stop_fd, EPOLLIN, NO_CONNECTION);
	stop_notify(stop_fd);
	client->connections = memory_touched(o->connections, sizeof(*client->connections));
	for (uint64_t i = 0; i < o->connections; i++) {
		const char *name = o->protocol->name;
		int fd = o->unix_path                ? mc_connect_unix(name, o->unix_path)
			 : o->protocol->by_datagrams ? mc_connect_udp(name, o->host, o->port)
						     : mc_connect_tcp(name, o->host, o->port);

		mc_connection_init(&client->connections[i], fd, client->largest_request, o->protocol);
		watch(client->epoll_fd, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, i);
	}
}

void mc_client_listen(struct mc_client *client, struct mc_listener listener)
{
	client->issued = client->answered = 0;
	for (uint64_t i = 0; i < client->options.connections; i++)
		client->connections[i].listener = listener;
}

struct mc_request mc_client_request(const struct mc_options *options, uint64_t number, uint64_t key, uint64_t value_bytes)
{
	return (struct mc_request){
		.number = number,
		.key = key,
		.key_bytes = options->key_bytes,
		.value_bytes = value_bytes,
		.serial_us = options->serial_us,
		.helper_us = options->helper_us,
	};
}

struct mc_connection *mc_client_find_room(struct mc_client *client, uint64_t from)
{
	uint64_t connections = client->options.connections;

	for (uint64_t i = 0; i < connections; i++) {
		struct mc_connection *connection = &client->connections[(from + i) % connections];

		if (mc_connection_reserve(connection, client->largest_request))
			return connection;
	}
	return NULL;
}

void mc_client_flush(struct mc_client *client)
{
	for (uint64_t i = 0; i < client->options.connections; i++)
		mc_connection_flush(&client->connections[i]);
}

size_t mc_client_alive(const struct mc_client *client)
{
	size_t alive = 0;

	for (uint64_t i = 0; i < client->options.connections; i++)
		alive += client->connections[i].fd >= 0;
	return alive;
}

void mc_client_wait(struct mc_client *client, uint64_t until_ns)
{
	struct epoll_event events[EVENTS];
	uint64_t now_ns = clock_now_ns();
	struct timespec timeout = clock_timespec(until_ns > now_ns ? until_ns - now_ns : 0);
	int count = epoll_pwait2(client->epoll_fd, events, EVENTS, &timeout, NULL);

	if (count < 0 && errno != EINTR)
		fail_run("cannot wait for the sockets: %s", strerror(errno));
	for (int i = 0; i < count; i++) {
		if (events[i].data.u64 == NO_CONNECTION)
			continue; /* the caller asks stop_requested() */
		mc_connection_receive(&client->connections[events[i].data.u64]);
		mc_connection_flush(&client->connections[events[i].data.u64]);
	}
}
