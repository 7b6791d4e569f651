/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MC_OPTIONS_H
#define MC_OPTIONS_H

#include "mc_client.h"

struct command_line mc_parse_options(struct mc_options *options, char **arguments);

#endif
