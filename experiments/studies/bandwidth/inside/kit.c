/* SPDX-License-Identifier: Apache-2.0 */
#include "kit.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define CGROUPS "/sys/fs/cgroup"
#define NS_PER_S 1000000000ull

struct shared *shared;
static const char *this_run;
static double iterations_per_us;

double number(const char *key, double otherwise)
{
	char wanted[64];
	const char *found;

	snprintf(wanted, sizeof(wanted), ":%s=", key);
	found = strstr(this_run, wanted);
	return found ? strtod(found + strlen(wanted), NULL) : otherwise;
}

static void choose_switches(void)
{
	static const char *const names[] = {"BW_KEEP", "BW_SLUSH", "BW_LOCKLESS"};
	int wanted = (int)number("on", 7);
	char word[64];
	int fd = open("/sys/kernel/debug/sched/features", O_WRONLY);

	for (int i = 0; fd >= 0 && i < 3; i++) {
		int length = snprintf(word, sizeof(word), "%s%s", wanted & 1 << i ? "" : "NO_", names[i]);

		/* a kernel without the series has none of them */
		if (write(fd, word, (size_t)length) < 0 && errno != EINVAL)
			perror(word);
	}
	if (fd >= 0)
		close(fd);
}

void begin_run(const char *run)
{
	this_run = run;
	memset(shared, 0, sizeof(*shared));
	choose_switches();
	put("/proc/sys/kernel/sched_cfs_bandwidth_slice_us", "%d", (int)number("slice", 5000));
}

uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

void sleep_until(uint64_t ns)
{
	struct timespec when = {(time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) == EINTR)
		;
}

void set_speed(double iterations)
{
	iterations_per_us = iterations;
}

/* 203 instructions an iteration, as experiments/load has them: to the host they cost next to nothing. */
static __attribute__((noinline)) void iterate(uint64_t times)
{
	for (; times; times--)
		__asm__ volatile(".rept 200\n\tnop\n\t.endr" : : : "memory");
}

void work_us(double us)
{
	iterate((uint64_t)(us * iterations_per_us));
}

/* xorshift64: above 0, below 1. */
double chance(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return ((double)(*state >> 11) + 0.5) / 9007199254740992.0;
}

static void fail(const char *what, const char *path)
{
	printf("FAILED %s %s: %s\n", what, path, strerror(errno));
	exit(1);
}

void put(const char *path, const char *format, ...)
{
	int fd = open(path, O_WRONLY);
	char text[128];
	va_list values;
	int length;

	va_start(values, format);
	length = vsnprintf(text, sizeof(text), format, values);
	va_end(values);
	if (fd < 0)
		fail("open", path);
	if (write(fd, text, (size_t)length) != length)
		fail(text, path);
	close(fd);
}

const char *in_group(const char *group, const char *file)
{
	static char paths[4][256];
	static int next;
	char *path = paths[next++ & 3];

	snprintf(path, sizeof(paths[0]), CGROUPS "/%s/%s", group, file);
	return path;
}

void make_group(const char *group)
{
	if (mkdir(in_group(group, ""), 0755) && errno != EEXIST)
		fail("mkdir", group);
}

void remove_group(const char *group)
{
	for (int i = 0; i < 400 && rmdir(in_group(group, "")) && errno == EBUSY; i++)
		usleep(5000);
}

void limit(const char *group, double quota_us, double period_us, double burst_us)
{
	put(in_group(group, "cpu.max.burst"), "0");
	if (quota_us > 0)
		put(in_group(group, "cpu.max"), "%.0f %.0f", quota_us, period_us);
	else
		put(in_group(group, "cpu.max"), "max %.0f", period_us);
	if (burst_us > 0)
		put(in_group(group, "cpu.max.burst"), "%.0f", burst_us);
}

struct use use_of(const char *group)
{
	struct use found = {0};
	FILE *file = fopen(in_group(group, "cpu.stat"), "r");
	char key[64];
	long long value;

	if (!file)
		fail("open", group);
	while (fscanf(file, "%63s %lld", key, &value) == 2) {
		if (!strcmp(key, "nr_periods"))
			found.periods = value;
		else if (!strcmp(key, "nr_throttled"))
			found.throttled = value;
		else if (!strcmp(key, "throttled_usec"))
			found.throttled_us = value;
		else if (!strcmp(key, "usage_usec"))
			found.used_us = value;
	}
	fclose(file);
	return found;
}

struct use use_since(const char *group, struct use before)
{
	struct use now = use_of(group);

	now.periods -= before.periods;
	now.throttled -= before.throttled;
	now.throttled_us -= before.throttled_us;
	now.used_us -= before.used_us;
	return now;
}

void keep_to(int first, int last)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	for (int cpu = first; cpu <= last; cpu++)
		CPU_SET(cpu, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		fail("affinity", "");
}

pid_t start(const char *group, int first, int last, void (*job)(int), int id)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	put(in_group(group, "cgroup.procs"), "%d", getpid());
	keep_to(first, last);
	while (!shared->go)
		usleep(1000);
	job(id);
	_exit(0);
}

void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

void hog(int id)
{
	while (!shared->stop) {
		work_us(100);
		shared->worker[id].done++;
	}
}

void say_run(void)
{
	printf("RUN:{\"run\": \"%s\"", this_run);
}

void say(const char *key, double value)
{
	printf(", \"%s\": %.6g", key, value);
}

static int by_size(const void *one, const void *other)
{
	uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;

	return (a > b) - (a < b);
}

void say_latencies(const struct worker *workers, int count)
{
	static uint64_t all[MOST_WORKERS * MOST_LATENCIES];
	double sum = 0;
	int n = 0;

	for (int i = 0; i < count; i++) {
		for (int k = 0; k < workers[i].count; k++) {
			all[n++] = workers[i].latency_ns[k];
			sum += (double)workers[i].latency_ns[k];
		}
	}
	if (!n)
		return;
	qsort(all, (size_t)n, sizeof(all[0]), by_size);
	say("requests", n);
	say("mean_ms", sum / n / 1e6);
	say("p50_ms", (double)all[n / 2] / 1e6);
	say("p95_ms", (double)all[(int)(n * 0.95)] / 1e6);
	say("p99_ms", (double)all[(int)(n * 0.99)] / 1e6);
	say("max_ms", (double)all[n - 1] / 1e6);
}

void say_end(void)
{
	puts("}");
	fflush(stdout);
}
