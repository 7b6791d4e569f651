/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_VALUE_H
#define CLI_VALUE_H

#include "cli.h"

/* Stores the value or ends with one line that says what would be valid. */
void cli_value_parse(struct option_spec *option, const char *text);

/* The current value as the user would type it; empty for a flag or an unset text. */
void cli_value_format(const struct option_spec *option, char *buffer, size_t size);

#endif
