/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"

#include "cli_value.h"
#include "fail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct option_spec *find(const struct command_line *line, const char *name, size_t length)
{
	for (size_t i = 0; i < line->count; i++) {
		struct option_spec *option = &line->options[i];

		if (strlen(option->name) == length && !strncmp(option->name, name, length))
			return option;
	}
	return NULL;
}

static struct option_spec *find_or_fail(const struct command_line *line, const char *argument)
{
	const char *name = argument + 2;
	struct option_spec *option;

	if (strncmp(argument, "--", 2) != 0 || !*name)
		fail_option("help", "shows the options of %s; '%s' is not one", line->subcommand, argument);
	option = find(line, name, strcspn(name, "="));
	if (!option)
		fail_option(name, "is not an option of %s (see dasec-load %s --help)",
			    line->subcommand, line->subcommand);
	return option;
}

/* The text after '=' or the next argument, which is then consumed. */
static const char *take_text(const struct option_spec *option, char ***argument)
{
	const char *equals = strchr(**argument, '=');

	if (equals)
		return equals + 1;
	if (!(*argument)[1])
		fail_option(option->name, "needs a value");
	return *++*argument;
}

void cli_parse(struct command_line *line, char **arguments)
{
	for (char **argument = arguments; *argument; argument++) {
		struct option_spec *option;

		if (!strcmp(*argument, "--help")) {
			cli_print_help(line, stdout);
			exit(0);
		}
		option = find_or_fail(line, *argument);
		option->given = true;
		if (option->type != OPTION_FLAG)
			cli_value_parse(option, take_text(option, &argument));
		else if (strchr(*argument, '='))
			fail_option(option->name, "takes no value");
		else
			*option->value.flag = true;
	}
}

bool cli_given(const struct command_line *line, const char *name)
{
	const struct option_spec *option = find(line, name, strlen(name));

	return option && option->given;
}

void cli_print_help(const struct command_line *line, FILE *file)
{
	fprintf(file, "usage: dasec-load %s [options]\n%s\n\n", line->subcommand, line->summary);
	for (size_t i = 0; i < line->count; i++) {
		char value[64];

		cli_value_format(&line->options[i], value, sizeof(value));
		fprintf(file, "  --%-20s %s%s%s%s\n", line->options[i].name, line->options[i].help,
			*value ? " [" : "", value, *value ? "]" : "");
	}
	fprintf(file, "  --%-20s %s\n", "help", "print this and exit");
}

static void write_value(const struct option_spec *option, const char *key, struct json *json)
{
	char text[64];

	switch (option->type) {
	case OPTION_COUNT:
		json_count(json, key, *option->value.count);
		break;
	case OPTION_REAL:
		json_real(json, key, *option->value.real);
		break;
	case OPTION_TEXT:
		json_text(json, key, *option->value.text);
		break;
	case OPTION_FLAG:
		json_bool(json, key, *option->value.flag);
		break;
	case OPTION_CHOICE:
	case OPTION_RANGE:
		cli_value_format(option, text, sizeof(text));
		json_text(json, key, text);
		break;
	}
}

void cli_write_parameters(const struct command_line *line, struct json *json)
{
	json_open_object(json, "parameters");
	for (size_t i = 0; i < line->count; i++) {
		char key[32];

		snprintf(key, sizeof(key), "%s", line->options[i].name);
		for (char *c = key; *c; c++)
			if (*c == '-')
				*c = '_';
		write_value(&line->options[i], key, json);
	}
	json_close_object(json);
}
