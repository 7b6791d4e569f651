/* SPDX-License-Identifier: Apache-2.0 */
#include "mc_connection.h"

#include "clock.h"
#include "memory.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST_PENDING 4096ULL
#define OUT_BYTES (256 * 1024)
#define IN_BYTES (64 * 1024)

void mc_connection_init(struct mc_connection *connection, int fd, size_t largest_request,
			const struct mc_protocol *protocol)
{
	*connection = (struct mc_connection){.fd = fd, .parser = {.protocol = protocol}};
	connection->out_size = OUT_BYTES + 2 * largest_request;
	connection->out = memory_touched(connection->out_size, 1);
	connection->in = memory_touched(IN_BYTES, 1);
	connection->pending = memory_touched(MOST_PENDING, sizeof(*connection->pending));
}

char *mc_connection_reserve(struct mc_connection *connection, size_t largest_request)
{
	size_t unsent = connection->out_tail - connection->out_head;

	uint64_t room = connection->parser.protocol->by_datagrams ? 1 : MOST_PENDING;

	if (connection->fd < 0 || connection->next_free - connection->oldest >= room)
		return NULL;
	if (connection->out_size - connection->out_tail < largest_request) {
		memmove(connection->out, connection->out + connection->out_head, unsent);
		connection->out_head = 0;
		connection->out_tail = unsent;
	}
	if (connection->out_size - connection->out_tail < largest_request)
		return NULL;
	return connection->out + connection->out_tail;
}

void mc_connection_queue(struct mc_connection *connection, uint64_t request, size_t bytes)
{
	connection->out_tail += bytes;
	connection->queued_bytes += bytes;
	connection->pending[connection->next_free++ % MOST_PENDING] = (struct mc_pending){
		.request = request,
		.end_byte = connection->queued_bytes,
	};
}

/* Without a next request the stream is out of step for good: everything on it is an error. */
static void lose(struct mc_connection *connection)
{
	uint64_t now_ns = clock_now_ns();

	close(connection->fd);
	connection->fd = -1;
	while (connection->oldest < connection->next_free) {
		uint64_t request = connection->pending[connection->oldest++ % MOST_PENDING].request;

		connection->listener.answered(connection->listener.owner, request, MC_ERROR, now_ns);
	}
}

static void tell_sent(struct mc_connection *connection)
{
	uint64_t now_ns = clock_now_ns();

	while (connection->first_unsent < connection->next_free) {
		struct mc_pending *p = &connection->pending[connection->first_unsent % MOST_PENDING];

		if (p->end_byte > connection->sent_bytes)
			return;
		connection->listener.sent(connection->listener.owner, p->request, now_ns);
		connection->first_unsent++;
	}
}

void mc_connection_flush(struct mc_connection *connection)
{
	while (connection->fd >= 0 && connection->out_head < connection->out_tail) {
		ssize_t sent = send(connection->fd, connection->out + connection->out_head,
				    connection->out_tail - connection->out_head, MSG_NOSIGNAL);

		if (sent < 0 && errno == EAGAIN)
			return;
		if (sent < 0 && errno != EINTR) {
			lose(connection);
			return;
		}
		if (sent > 0) {
			connection->out_head += (size_t)sent;
			connection->sent_bytes += (uint64_t)sent;
			tell_sent(connection);
		}
	}
}

/* False when a reply came that no request waits for, or that is no reply. */
static bool take_replies(struct mc_connection *connection, uint64_t now_ns)
{
	size_t done = 0, used;
	enum mc_reply reply;

	for (;;) {
		connection->parser.expected = connection->pending[connection->oldest % MOST_PENDING].request;
		reply = connection->parser.protocol->parse(&connection->parser, connection->in + done,
							   connection->in_fill - done, &used);
		if (reply == MC_INCOMPLETE)
			break;
		if (!used || connection->oldest == connection->first_unsent)
			return false;
		done += used;
		connection->listener.answered(
			connection->listener.owner,
			connection->pending[connection->oldest++ % MOST_PENDING].request, reply,
			now_ns);
	}
	done += used;
	memmove(connection->in, connection->in + done, connection->in_fill - done);
	connection->in_fill -= done;
	return true;
}

void mc_connection_receive(struct mc_connection *connection)
{
	while (connection->fd >= 0) {
		ssize_t got = recv(connection->fd, connection->in + connection->in_fill,
				   IN_BYTES - connection->in_fill, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno == EAGAIN)
			return;
		if (got <= 0) {
			lose(connection);
			return;
		}
		connection->in_fill += (size_t)got;
		if (!take_replies(connection, clock_now_ns()))
			lose(connection);
	}
}
