/* SPDX-License-Identifier: Apache-2.0 */
/* vCPU 0 -> one helper, in turn -> vCPU 0. In turn, not by the key's hash: memcached's workers, too, take whatever comes
 * next. So two of them can want one lock of the store at once, and one that is preempted with it stops the other. */
#include "memcached.h"

#include "frame.h"
#include "job.h"
#include "memory.h"
#include "options.h"
#include "store.h"

#define BAD_FORMAT "CLIENT_ERROR bad command line format\r\n"

struct command {
	struct text line, data; /* data: all behind the line */
};

struct answer {
	uint8_t bytes[FRAME_MOST_PAYLOAD];
	uint32_t used;
	bool full; /* not all had room */
};

static void put(struct answer *answer, const void *from, uint32_t bytes)
{
	if (bytes > sizeof(answer->bytes) - answer->used) {
		answer->full = true;
		return;
	}
	memcpy(answer->bytes + answer->used, from, bytes);
	answer->used += bytes;
}

static void put_text(struct answer *answer, const char *text)
{
	for (; *text; text++)
		put(answer, text, 1);
}

static void put_number(struct answer *answer, uint32_t number)
{
	char digits[11];
	char *first = digits + sizeof(digits) - 1;

	*first = '\0';
	do
		*--first = (char)('0' + number % 10);
	while (number /= 10);
	put_text(answer, first);
}

/* This and nothing else. */
static void say(struct answer *answer, const char *line)
{
	answer->used = MEMCACHED_HEADER;
	put_text(answer, line);
}

static bool is_time(struct text word)
{
	uint32_t unused;

	if (word.bytes && *word.at == '-')
		word = (struct text){word.at + 1, word.bytes - 1};
	return text_number(word, &unused);
}

static void get(struct cpu *cpu, struct command *command, struct answer *answer)
{
	struct text key = text_word(&command->line);
	struct value value;

	if (!key.bytes) {
		say(answer, "ERROR\r\n");
		return;
	}
	for (; key.bytes; key = text_word(&command->line)) {
		if (key.bytes > STORE_KEY_BYTES) {
			say(answer, BAD_FORMAT);
			return;
		}
		if (!store_get(cpu, key, &value))
			continue;
		put_text(answer, "VALUE ");
		put(answer, key.at, key.bytes);
		put_text(answer, " ");
		put_number(answer, value.flags);
		put_text(answer, " ");
		put_number(answer, value.bytes);
		put_text(answer, "\r\n");
		put(answer, value.data, value.bytes);
		put_text(answer, "\r\n");
	}
	put_text(answer, "END\r\n");
	if (answer->full)
		say(answer, "SERVER_ERROR the values do not fit into one datagram\r\n");
}

static void set(struct cpu *cpu, struct command *command, struct answer *answer)
{
	struct text key = text_word(&command->line), flags_word = text_word(&command->line);
	struct text time = text_word(&command->line), bytes_word = text_word(&command->line);
	uint32_t flags, bytes;

	if (!bytes_word.bytes) {
		say(answer, "ERROR\r\n");
	} else if (key.bytes > STORE_KEY_BYTES || !text_number(flags_word, &flags) || !is_time(time) ||
		   !text_number(bytes_word, &bytes)) {
		say(answer, BAD_FORMAT);
	} else if (bytes > STORE_VALUE_BYTES) {
		store_delete(cpu, key); /* as memcached does: better none than the old one */
		say(answer, "SERVER_ERROR object too large for cache\r\n");
	} else if (command->data.bytes < bytes + 2 || memcmp(command->data.at + bytes, "\r\n", 2)) {
		say(answer, "CLIENT_ERROR bad data chunk\r\n");
	} else {
		store_set(cpu, key, flags, (struct text){command->data.at, bytes});
		say(answer, "STORED\r\n");
	}
	if (text_is(text_word(&command->line), "noreply"))
		answer->used = 0;
}

static void delete(struct cpu *cpu, struct command *command, struct answer *answer)
{
	struct text key = text_word(&command->line), last = text_word(&command->line);

	if (!key.bytes)
		say(answer, "ERROR\r\n");
	else if (last.bytes && !text_is(last, "noreply"))
		say(answer, "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n");
	else if (key.bytes > STORE_KEY_BYTES)
		say(answer, BAD_FORMAT);
	else
		say(answer, store_delete(cpu, key) ? "DELETED\r\n" : "NOT_FOUND\r\n");
	if (text_is(last, "noreply"))
		answer->used = 0;
}

static void version(struct cpu *cpu, struct command *command, struct answer *answer)
{
	(void)cpu, (void)command;
	say(answer, "VERSION 0.1.0-bare\r\n");
}

static void run(struct cpu *cpu, struct command *command, struct answer *answer)
{
	static const struct {
		const char *name;
		void (*run)(struct cpu *cpu, struct command *command, struct answer *answer);
	} commands[] = {{"get", get}, {"set", set}, {"delete", delete}, {"version", version}};
	struct text name = text_word(&command->line);

	for (unsigned int i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (text_is(name, commands[i].name)) {
			commands[i].run(cpu, command, answer);
			return;
		}
	say(answer, "ERROR\r\n");
}

/* In the place of the command: the answer is made elsewhere first, since it repeats keys. */
static void serve(struct cpu *cpu, struct job *job)
{
	const uint8_t alone[] = {0, 0, 0, 1}, *header = job->payload;
	const uint8_t answer_header[MEMCACHED_HEADER] = {header[0], header[1], 0, 0, 0, 1, 0, 0};
	struct command command = {.data = {job->payload + MEMCACHED_HEADER, job->bytes - MEMCACHED_HEADER}};
	struct answer answer;

	memcpy(answer.bytes, answer_header, sizeof(answer_header));
	answer.used = sizeof(answer_header);
	answer.full = false;
	if (memcmp(header + 2, alone, sizeof(alone)))
		say(&answer, "SERVER_ERROR multi-packet request not supported\r\n");
	else if (text_line(&command.data, &command.line))
		run(cpu, &command, &answer);
	else
		say(&answer, "ERROR\r\n");
	memcpy(job->payload, answer.bytes, answer.used);
	job->bytes = answer.used;
}

static void begin(struct cpu *cpu, struct job *job)
{
	static uint32_t turn; /* vCPU 0's alone */

	mailbox_post(cpu, helper(turn++ % (uint32_t)options.helpers), job);
}

static void help(struct cpu *cpu, struct job *job)
{
	serve(cpu, job);
	job_finish(cpu, job);
}

const struct load memcached_load = {.begin = begin, .help = help, .alone = serve};
