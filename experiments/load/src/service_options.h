/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVICE_OPTIONS_H
#define SERVICE_OPTIONS_H

#include "service.h"

enum { VARIANT_FANOUT, VARIANT_PIPELINE, VARIANT_CONVOY, VARIANT_PRETEND };
enum { WAKES_NONE, WAKES_LOGGER, WAKES_PEER };

struct command_line service_parse(struct service_options *options, char **arguments);

#endif
