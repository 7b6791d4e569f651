/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SUBCOMMANDS_H
#define SUBCOMMANDS_H

/* Each gets the arguments after its name, NULL at the end, and returns the exit code. */
int service_main(char **arguments);
int memcached_main(char **arguments);
int redis_main(char **arguments);
int http_main(char **arguments);
int postgres_main(char **arguments);
int bare_main(char **arguments);
int threads_main(char **arguments);
int matrixmul_main(char **arguments);
int wakeup_main(char **arguments);

#endif
