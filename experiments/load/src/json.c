/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

#include <inttypes.h>

static void write_quoted(FILE *file, const char *text)
{
	fputc('"', file);
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c == '"' || *c == '\\')
			fprintf(file, "\\%c", *c);
		else if (*c < 0x20)
			fprintf(file, "\\u%04x", *c);
		else
			fputc(*c, file);
	}
	fputc('"', file);
}

static void begin_value(struct json *json, const char *key)
{
	if (json->need_comma)
		fputs(", ", json->file);
	json->need_comma = true;
	if (key) {
		write_quoted(json->file, key);
		fputs(": ", json->file);
	}
}

static void open_with(struct json *json, const char *key, char bracket)
{
	begin_value(json, key);
	fputc(bracket, json->file);
	json->need_comma = false;
}

static void close_with(struct json *json, char bracket)
{
	fputc(bracket, json->file);
	json->need_comma = true;
}

void json_open_object(struct json *json, const char *key)
{
	open_with(json, key, '{');
}

void json_close_object(struct json *json)
{
	close_with(json, '}');
}

void json_open_array(struct json *json, const char *key)
{
	open_with(json, key, '[');
}

void json_close_array(struct json *json)
{
	close_with(json, ']');
}

void json_count(struct json *json, const char *key, uint64_t value)
{
	begin_value(json, key);
	fprintf(json->file, "%" PRIu64, value);
}

void json_real(struct json *json, const char *key, double value)
{
	begin_value(json, key);
	fprintf(json->file, "%.12g", value);
}

void json_text(struct json *json, const char *key, const char *value)
{
	begin_value(json, key);
	if (value)
		write_quoted(json->file, value);
	else
		fputs("null", json->file);
}

void json_bool(struct json *json, const char *key, bool value)
{
	begin_value(json, key);
	fputs(value ? "true" : "false", json->file);
}

void json_null(struct json *json, const char *key)
{
	json_text(json, key, NULL);
}
