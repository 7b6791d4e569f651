/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include "cpu.h"

/* The address that QEMU's user network gives its first guest. */
struct options options = {
	.quantum_us = 4, .rounds_per_us = 1000, .hold_us = 3000, .hold_gap_us = 100000,
	.burst_us = 10000, .interrupt = 5, .address = {10, 0, 2, 15},
};

static uint64_t number(const char **text)
{
	uint64_t value = 0;

	for (; **text >= '0' && **text <= '9'; (*text)++)
		value = 10 * value + (uint64_t)(**text - '0');
	return value;
}

/* What follows KEY= at the start of a word, or NULL. */
static const char *value_of(const char *word, const char *key)
{
	while (*key && *word == *key) {
		word++;
		key++;
	}
	return !*key && *word == '=' ? word + 1 : NULL;
}

static void read_word(const char *word)
{
	static const struct {
		const char *key;
		uint64_t *value;
	} numbers[] = {
		{"helpers", &options.helpers},       {"background", &options.background},
		{"burst_us", &options.burst_us},     {"gap_us", &options.gap_us},
		{"holder", &options.holder},         {"hold_us", &options.hold_us},
		{"hold_gap_us", &options.hold_gap_us}, {"quantum_us", &options.quantum_us},
		{"rounds_per_us", &options.rounds_per_us}, {"interrupt", &options.interrupt},
	};
	const char *value;

	for (unsigned int i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if ((value = value_of(word, numbers[i].key)))
			*numbers[i].value = number(&value);
	if ((value = value_of(word, "address")))
		for (unsigned int i = 0; i < sizeof(options.address); i++, value += *value == '.')
			options.address[i] = (uint8_t)number(&value);
}

void options_read(const char *command_line)
{
	options.helpers = cpu_count - 1;
	while (*command_line) {
		read_word(command_line);
		while (*command_line && *command_line != ' ')
			command_line++;
		while (*command_line == ' ')
			command_line++;
	}
	if (options.helpers > cpu_count - 1)
		options.helpers = cpu_count - 1;
	if (!options.quantum_us)
		options.quantum_us = 1;
}
