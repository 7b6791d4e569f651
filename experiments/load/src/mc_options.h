/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MC_OPTIONS_H
#define MC_OPTIONS_H

#include "mc_client.h"

/* The protocol's name is the subcommand's. */
struct command_line mc_parse_options(struct mc_options *options, const struct mc_protocol *protocol,
				     char **arguments);

#endif
