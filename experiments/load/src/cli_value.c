/* SPDX-License-Identifier: Apache-2.0 */
#include "cli_value.h"

#include "fail.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool read_count(const char *text, const char **end, uint64_t *value)
{
	char *stop;

	if (!isdigit((unsigned char)*text))
		return false; /* strtoull would take blanks and a minus sign */
	errno = 0;
	*value = strtoull(text, &stop, 10);
	*end = stop;
	return errno == 0;
}

static void parse_count(struct option_spec *option, const char *text)
{
	const char *end;
	uint64_t value;

	if (!read_count(text, &end, &value) || *end || value < option->count_low ||
	    value > option->count_high)
		fail_option(option->name,
			    "must be a whole number from %" PRIu64 " to %" PRIu64 ", got '%s'",
			    option->count_low, option->count_high, text);
	*option->value.count = value;
}

static void parse_real(struct option_spec *option, const char *text)
{
	char *end;
	double value = strtod(text, &end);
	bool number = end != text && !*end && isfinite(value) && !isspace((unsigned char)*text);

	if (option->above_low && (!number || value <= option->real_low))
		fail_option(option->name, "must be a number above %g, got '%s'", option->real_low, text);
	if (!number || value < option->real_low || value > option->real_high)
		fail_option(option->name, "must be a number from %g to %g, got '%s'",
			    option->real_low, option->real_high, text);
	*option->value.real = value;
}

static void parse_choice(struct option_spec *option, const char *text)
{
	char names[128] = "";

	for (unsigned int i = 0; option->choices[i]; i++) {
		if (!strcmp(option->choices[i], text)) {
			*option->value.choice = i;
			return;
		}
		if (i)
			strncat(names, ", ", sizeof(names) - strlen(names) - 1);
		strncat(names, option->choices[i], sizeof(names) - strlen(names) - 1);
	}
	fail_option(option->name, "must be one of %s, got '%s'", names, text);
}

static void parse_range(struct option_spec *option, const char *text)
{
	const char *end;
	struct range range;
	bool valid = read_count(text, &end, &range.low);

	range.high = range.low;
	if (valid && *end == '-')
		valid = read_count(end + 1, &end, &range.high);
	if (!valid || *end || range.low > range.high || range.low < option->count_low ||
	    range.high > option->count_high)
		fail_option(option->name,
			    "must be N or LOW-HIGH within %" PRIu64 " to %" PRIu64 ", got '%s'",
			    option->count_low, option->count_high, text);
	*option->value.range = range;
}

void cli_value_parse(struct option_spec *option, const char *text)
{
	switch (option->type) {
	case OPTION_COUNT:
		parse_count(option, text);
		break;
	case OPTION_REAL:
		parse_real(option, text);
		break;
	case OPTION_TEXT:
		if (!*text)
			fail_option(option->name, "must not be empty");
		*option->value.text = text;
		break;
	case OPTION_CHOICE:
		parse_choice(option, text);
		break;
	case OPTION_RANGE:
		parse_range(option, text);
		break;
	case OPTION_FLAG:
		break;
	}
}

static void format_range(const struct range *range, char *buffer, size_t size)
{
	if (range->low == range->high)
		snprintf(buffer, size, "%" PRIu64, range->low);
	else
		snprintf(buffer, size, "%" PRIu64 "-%" PRIu64, range->low, range->high);
}

void cli_value_format(const struct option_spec *option, char *buffer, size_t size)
{
	*buffer = '\0';
	switch (option->type) {
	case OPTION_COUNT:
		snprintf(buffer, size, "%" PRIu64, *option->value.count);
		break;
	case OPTION_REAL:
		snprintf(buffer, size, "%g", *option->value.real);
		break;
	case OPTION_TEXT:
		snprintf(buffer, size, "%s", *option->value.text ? *option->value.text : "");
		break;
	case OPTION_CHOICE:
		snprintf(buffer, size, "%s", option->choices[*option->value.choice]);
		break;
	case OPTION_RANGE:
		format_range(option->value.range, buffer, size);
		break;
	case OPTION_FLAG:
		break;
	}
}
