/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Writes JSON on one line as it goes; the key is NULL inside an array and at the top. */
struct json {
	FILE *file;
	bool need_comma;
};

void json_open_object(struct json *json, const char *key);
void json_close_object(struct json *json);
void json_open_array(struct json *json, const char *key);
void json_close_array(struct json *json);
void json_count(struct json *json, const char *key, uint64_t value);
void json_real(struct json *json, const char *key, double value);
void json_text(struct json *json, const char *key, const char *value); /* NULL gives null */
void json_bool(struct json *json, const char *key, bool value);
void json_null(struct json *json, const char *key);

#endif
