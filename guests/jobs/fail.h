/* SPDX-License-Identifier: Apache-2.0 */
/* A job that cannot go on says where and ends with status 1. */
#ifndef FAIL_H
#define FAIL_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define fail(what)                                                                                 \
	do {                                                                                       \
		printf("failed %s:%d %s: %s\n", __FILE__, __LINE__, (what), strerror(errno));      \
		_Exit(1);                                                                          \
	} while (0)

#define must(call)                                                                                 \
	do {                                                                                       \
		if ((call) < 0)                                                                    \
			fail(#call);                                                               \
	} while (0)

#endif
