/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONSOLE_H
#define CONSOLE_H

#include <stdint.h>

/* To QEMU's debug console, from either privilege. */
void console_text(const char *text);
void console_number(uint64_t number);

#endif
