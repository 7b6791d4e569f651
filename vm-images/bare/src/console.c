/* SPDX-License-Identifier: Apache-2.0 */
#include "console.h"

#include "layout.h"

static int privilege(void)
{
	uint16_t selector;

	asm("movw %%cs, %0" : "=r"(selector));
	return selector & 3;
}

static void put(char letter)
{
	if (privilege())
		asm volatile("int3" : : "a"(letter), "d"(PORT_CONSOLE) : "memory");
	else
		asm volatile("outb %b0, %w1" : : "a"(letter), "d"(PORT_CONSOLE));
}

void console_text(const char *text)
{
	while (*text)
		put(*text++);
}

void console_number(uint64_t number)
{
	char digits[21];
	char *first = digits + sizeof(digits) - 1;

	*first = '\0';
	do
		*--first = (char)('0' + number % 10);
	while (number /= 10);
	console_text(first);
}
