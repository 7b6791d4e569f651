/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RocksDB behind GET, SET and PING of Redis' protocol: it is a library, and its own benchmark does
 * not time what waits (docs/decisions/0090-rocksdb.md).
 *
 *	dasec-rocksdb ADDRESS PORT THREADS FOLDER MEMTABLE_BYTES
 */
#include "resp.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	MOST_THREADS = 64,
	READ_BYTES = 16 * 1024,
	AT_ONCE = 64,
	/* RocksDB's own is 4: fewer, so that it compacts within seconds. */
	FILES_BEFORE_COMPACTION = 2,
};

struct connection {
	int socket;
	struct resp_buffer in, out;
};

struct server {
	rocksdb_t *db;
	rocksdb_readoptions_t *read;
	rocksdb_writeoptions_t *write;
	int epolls[MOST_THREADS];
	int threads;
};

struct serving {
	struct server *server;
	int number;
};

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "dasec-rocksdb: %s: %s\n", what, why);
	exit(1);
}

static void get(struct server *server, struct resp_word key, struct resp_buffer *out)
{
	char *error = NULL;
	size_t length;
	rocksdb_pinnableslice_t *slice =
		rocksdb_get_pinned(server->db, server->read, key.at, key.length, &error);
	const char *value = slice ? rocksdb_pinnableslice_value(slice, &length) : NULL;

	if (error)
		resp_say_error(out, error);
	else if (value)
		resp_say_value(out, value, length);
	else
		resp_say(out, "$-1\r\n", 5);
	free(error);
	if (slice)
		rocksdb_pinnableslice_destroy(slice);
}

static void set(struct server *server, struct resp_word key, struct resp_word value,
		struct resp_buffer *out)
{
	char *error = NULL;

	rocksdb_put(server->db, server->write, key.at, key.length, value.at, value.length, &error);
	if (error)
		resp_say_error(out, error);
	else
		resp_say(out, "+OK\r\n", 5);
	free(error);
}

static void answer(struct server *server, const struct resp_word words[], size_t count,
		   struct resp_buffer *out)
{
	static const char unknown[] = "-ERR there are GET, SET and PING\r\n";

	if (count == 2 && resp_is(words[0], "GET"))
		get(server, words[1], out);
	else if (count == 3 && resp_is(words[0], "SET"))
		set(server, words[1], words[2], out);
	else if (count == 1 && resp_is(words[0], "PING"))
		resp_say(out, "+PONG\r\n", 7);
	else
		resp_say(out, unknown, sizeof unknown - 1);
}

static bool send_all(int socket, struct resp_buffer *out)
{
	for (size_t sent = 0; sent < out->used;) {
		ssize_t more = send(socket, out->bytes + sent, out->used - sent, MSG_NOSIGNAL);

		if (more <= 0)
			return false;
		sent += (size_t)more;
	}
	out->used = 0;
	return true;
}

/* What has come, and the answers to all that is whole. False if nobody, or no client, is there. */
static bool serve_once(struct server *server, struct connection *one)
{
	struct resp_word words[RESP_MOST_WORDS];
	const char *at, *end;
	size_t count;
	ssize_t came;
	int found;

	resp_reserve(&one->in, READ_BYTES);
	came = recv(one->socket, one->in.bytes + one->in.used, one->in.size - one->in.used, 0);
	if (came <= 0)
		return false;
	one->in.used += (size_t)came;
	at = one->in.bytes;
	end = at + one->in.used;
	while ((found = resp_take(&at, end, words, &count)) > 0)
		answer(server, words, count, &one->out);
	one->in.used = (size_t)(end - at);
	memmove(one->in.bytes, at, one->in.used);
	return send_all(one->socket, &one->out) && found == 0;
}

static void *serve(void *argument)
{
	struct serving *own = argument;
	struct epoll_event events[AT_ONCE];
	char name[16];

	snprintf(name, sizeof name, "serve-%d", own->number);
	pthread_setname_np(pthread_self(), name);
	for (;;) {
		int count = epoll_wait(own->server->epolls[own->number], events, AT_ONCE, -1);

		for (int index = 0; index < count; index++) {
			struct connection *one = events[index].data.ptr;

			if (serve_once(own->server, one))
				continue;
			close(one->socket);
			free(one->in.bytes);
			free(one->out.bytes);
			free(one);
		}
	}
	return NULL;
}

static rocksdb_t *open_store(const char *folder, size_t memtable_bytes)
{
	rocksdb_options_t *options = rocksdb_options_create();
	char *error = NULL;
	rocksdb_t *db;

	rocksdb_options_set_create_if_missing(options, 1);
	rocksdb_options_set_write_buffer_size(options, memtable_bytes);
	rocksdb_options_set_level0_file_num_compaction_trigger(options, FILES_BEFORE_COMPACTION);
	/* The load tool's values are one letter over and over: compressed, they would be nothing. */
	rocksdb_options_set_compression(options, rocksdb_no_compression);
	/* One thread that flushes and one that compacts. */
	rocksdb_options_set_max_background_jobs(options, 2);
	db = rocksdb_open(options, folder, &error);
	if (error)
		fail(folder, error);
	return db;
}

static int listen_at(const char *address, int port)
{
	struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;

	if (inet_pton(AF_INET, address, &where.sin_addr) != 1)
		fail(address, "is no IPv4 address");
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
	if (bind(listener, (struct sockaddr *)&where, sizeof where) || listen(listener, SOMAXCONN))
		fail("cannot listen at that port", address);
	return listener;
}

static void start_threads(struct server *server, struct serving serving[])
{
	for (int number = 0; number < server->threads; number++) {
		pthread_t thread;

		server->epolls[number] = epoll_create1(0);
		serving[number] = (struct serving){server, number};
		if (server->epolls[number] < 0 || pthread_create(&thread, NULL, serve, &serving[number]))
			fail("threads", "cannot be started");
	}
}

/* Connections to the threads in turn. */
static void hand_out(struct server *server, int listener)
{
	for (int number = 0;; number = (number + 1) % server->threads) {
		struct connection *one = calloc(1, sizeof *one);
		struct epoll_event event = {.events = EPOLLIN, .data.ptr = one};
		int yes = 1;

		if (!one)
			fail("memory", "there is none left");
		one->socket = accept(listener, NULL, NULL);
		if (one->socket < 0)
			fail("connections", "cannot be taken");
		setsockopt(one->socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
		epoll_ctl(server->epolls[number], EPOLL_CTL_ADD, one->socket, &event);
	}
}

int main(int count, char **words)
{
	static struct serving serving[MOST_THREADS];
	static struct server server;

	if (count != 6)
		fail("usage", "dasec-rocksdb ADDRESS PORT THREADS FOLDER MEMTABLE_BYTES");
	server.threads = atoi(words[3]);
	if (server.threads < 1 || server.threads > MOST_THREADS)
		fail(words[3], "is no number of threads from 1 to 64");
	server.db = open_store(words[4], strtoul(words[5], NULL, 10));
	server.read = rocksdb_readoptions_create();
	server.write = rocksdb_writeoptions_create();
	start_threads(&server, serving);
	hand_out(&server, listen_at(words[1], atoi(words[2])));
}
