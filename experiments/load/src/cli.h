/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_H
#define CLI_H

#include "json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_type { OPTION_COUNT, OPTION_REAL, OPTION_TEXT, OPTION_CHOICE, OPTION_FLAG, OPTION_RANGE };

struct range {
	uint64_t low, high;
};

/* One option of a subcommand; the value holds the default before parsing. */
struct option_spec {
	const char *name; /* without the dashes */
	const char *help;
	enum option_type type;
	union {
		uint64_t *count;
		double *real;
		const char **text;
		unsigned int *choice;
		bool *flag;
		struct range *range;
	} value;
	uint64_t count_low, count_high; /* COUNT and RANGE, included */
	double real_low, real_high;     /* REAL, included unless above_low */
	bool above_low;
	const char *const *choices; /* CHOICE, NULL at the end */
	bool given;
};

/* Rows of a table of options. */
#define COUNT(option, variable, low, high, words)                                                   \
	{.name = (option), .type = OPTION_COUNT, .value.count = (variable), .count_low = (low),    \
	 .count_high = (high), .help = (words)}
#define REAL(option, variable, low, high, words)                                                    \
	{.name = (option), .type = OPTION_REAL, .value.real = (variable), .real_low = (low),       \
	 .real_high = (high), .help = (words)}
#define REAL_ABOVE(option, variable, low, high, words)                                              \
	{.name = (option), .type = OPTION_REAL, .value.real = (variable), .real_low = (low),       \
	 .real_high = (high), .above_low = true, .help = (words)}
#define TEXT(option, variable, words)                                                               \
	{.name = (option), .type = OPTION_TEXT, .value.text = (variable), .help = (words)}
#define CHOICE(option, variable, names, words)                                                      \
	{.name = (option), .type = OPTION_CHOICE, .value.choice = (variable), .choices = (names),  \
	 .help = (words)}
#define FLAG(option, variable, words)                                                               \
	{.name = (option), .type = OPTION_FLAG, .value.flag = (variable), .help = (words)}
#define RANGE(option, variable, low, high, words)                                                   \
	{.name = (option), .type = OPTION_RANGE, .value.range = (variable), .count_low = (low),    \
	 .count_high = (high), .help = (words)}

struct command_line {
	const char *subcommand;
	const char *summary;
	struct option_spec *options;
	size_t count;
};

/* Fills the values; --help prints and exits 0, the first bad argument ends with fail_option(). */
void cli_parse(struct command_line *line, char **arguments);

bool cli_given(const struct command_line *line, const char *name);
void cli_print_help(const struct command_line *line, FILE *file);

/* Writes all options with their values as the object "parameters". */
void cli_write_parameters(const struct command_line *line, struct json *json);

#endif
