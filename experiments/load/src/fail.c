/* SPDX-License-Identifier: Apache-2.0 */
#include "fail.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static void print_line(const char *format, va_list arguments)
{
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
}

void fail_option(const char *name, const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "dasec-load: --%s: ", name);
	va_start(arguments, format);
	print_line(format, arguments);
	va_end(arguments);
	exit(2);
}

void fail_run(const char *format, ...)
{
	va_list arguments;

	fputs("dasec-load: ", stderr);
	va_start(arguments, format);
	print_line(format, arguments);
	va_end(arguments);
	exit(1);
}

void complain(const char *format, ...)
{
	va_list arguments;

	fputs("dasec-load: ", stderr);
	va_start(arguments, format);
	print_line(format, arguments);
	va_end(arguments);
}
