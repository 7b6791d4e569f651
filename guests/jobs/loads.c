/* SPDX-License-Identifier: Apache-2.0 */
#include "loads.h"

#include "crew.h"
#include "fail.h"

#include <sys/socket.h>
#include <unistd.h>

enum { CPU = 1, MESSAGE = 100 };

struct seat {
	struct member member;
	struct gate *start;
	int in, out, turns;
	int *receivers; /* of a sender */
};

static void transfer(int file, char *text, size_t length, ssize_t (*move)(int, void *, size_t))
{
	for (size_t done = 0; done < length;) {
		ssize_t moved = move(file, text + done, length - done);

		must(moved);
		done += (size_t)moved;
	}
}

static ssize_t put(int file, void *text, size_t length)
{
	return write(file, text, length);
}

static void server(struct member *self)
{
	struct seat *seat = self->shared;
	int word;

	gate_wait(seat->start, 0);
	for (int i = 0; i < seat->turns; i++) {
		transfer(seat->in, (char *)&word, sizeof(word), read);
		transfer(seat->out, (char *)&word, sizeof(word), put);
	}
}

static void client(struct member *self)
{
	struct seat *seat = self->shared;
	int word = 0;

	gate_wait(seat->start, 0);
	for (int i = 0; i < seat->turns; i++) {
		transfer(seat->out, (char *)&word, sizeof(word), put);
		transfer(seat->in, (char *)&word, sizeof(word), read);
	}
}

static void sender(struct member *self)
{
	struct seat *seat = self->shared;
	char message[MESSAGE] = {0};

	gate_wait(seat->start, 0);
	for (int i = 0; i < seat->turns; i++) {
		for (int to = 0; to < MESSAGING_SIDE; to++)
			transfer(seat->receivers[to], message, MESSAGE, put);
	}
}

static void receiver(struct member *self)
{
	struct seat *seat = self->shared;
	char message[MESSAGE];

	gate_wait(seat->start, 0);
	for (int i = 0; i < seat->turns * MESSAGING_SIDE; i++)
		transfer(seat->in, message, MESSAGE, read);
}

/* They sleep at the gate when this is over. */
static const int64_t settle_ns = 50 * NS_PER_MS;

static void seat(struct seat *seat, struct gate *start, int turns, void (*run)(struct member *))
{
	seat->start = start;
	seat->turns = turns;
	seat->member = (struct member){.run = run, .shared = seat, .cpu = CPU};
	crew_start(&seat->member);
}

static int64_t measure(struct seat *seats, int count, loads_ready *ready)
{
	int64_t begin_ns;

	sleep_ns(settle_ns);
	ready();
	begin_ns = now_ns();
	gate_open(seats[0].start);
	for (int i = 0; i < count; i++) {
		errno = pthread_join(seats[i].member.thread, NULL);
		if (errno)
			fail("pthread_join");
	}
	return now_ns() - begin_ns;
}

int64_t load_pipe(int turns, loads_ready *ready)
{
	struct seat seats[2] = {0};
	struct gate start = {0};
	int there[2], back[2];
	int64_t took_ns;

	pin(CPU);
	must(pipe(there));
	must(pipe(back));
	seats[0].in = there[0];
	seats[0].out = back[1];
	seats[1].in = back[0];
	seats[1].out = there[1];
	seat(&seats[0], &start, turns, server);
	seat(&seats[1], &start, turns, client);
	took_ns = measure(seats, 2, ready);
	for (int i = 0; i < 2; i++) {
		close(there[i]);
		close(back[i]);
	}
	return took_ns;
}

int64_t load_messaging(int turns, loads_ready *ready)
{
	static struct seat seats[2 * MESSAGING_SIDE];
	int writing[MESSAGING_SIDE], pair[2];
	struct gate start = {0};
	int64_t took_ns;

	pin(CPU);
	for (int i = 0; i < MESSAGING_SIDE; i++) {
		must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
		writing[i] = pair[0];
		seats[i].in = pair[1];
		seat(&seats[i], &start, turns, receiver);
	}
	for (int i = MESSAGING_SIDE; i < 2 * MESSAGING_SIDE; i++) {
		seats[i].receivers = writing;
		seat(&seats[i], &start, turns, sender);
	}
	took_ns = measure(seats, 2 * MESSAGING_SIDE, ready);
	for (int i = 0; i < MESSAGING_SIDE; i++) {
		close(writing[i]);
		close(seats[i].in);
	}
	return took_ns;
}
