/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that a guest of vm-images/bare serves with all of its helpers. */
#include "mc_protocol.h"

#include <string.h>

/* As vm-images/bare/src/request.h has it. The answer is the request. */
struct asked {
	uint32_t magic;
	uint32_t id;
	uint32_t kind;
	uint32_t serial_us, helper_us, straggler_us, lock_us, tail_us;
	uint64_t stamp;
};

_Static_assert(sizeof(struct asked) == 40, "vm-images/bare/src/request.h");

#define MAGIC 0x45524142U /* "BARE" */
#define FANOUT 1

static size_t format_get(char *buffer, const struct mc_request *request)
{
	struct asked asked = {
		.magic = MAGIC,
		.id = (uint32_t)request->number,
		.kind = FANOUT,
		.serial_us = (uint32_t)request->serial_us,
		.helper_us = (uint32_t)request->helper_us,
	};

	memcpy(buffer, &asked, sizeof(asked));
	return sizeof(asked);
}

static enum mc_reply parse(struct mc_parser *parser, const char *bytes, size_t count, size_t *used)
{
	struct asked answer;

	*used = 0;
	if (!count)
		return MC_INCOMPLETE;
	if (count != sizeof(answer))
		return MC_ERROR;
	memcpy(&answer, bytes, sizeof(answer));
	if (answer.magic != MAGIC || answer.kind != FANOUT || answer.id != (uint32_t)parser->expected)
		return MC_ERROR;
	*used = sizeof(answer);
	return MC_HIT;
}

const struct mc_protocol mc_bare = {
	.name = "bare",
	.parse = parse,
	.get = format_get,
	.by_datagrams = true,
	.has_work = true,
};
