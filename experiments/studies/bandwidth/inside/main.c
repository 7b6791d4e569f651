/* SPDX-License-Identifier: Apache-2.0
 *
 * The first process of a counted guest: does the runs that the kernel's command line names, task=RUN,RUN,…, on
 * the first CPUs, and measures from the last one.
 */
#include "kit.h"

#include <fcntl.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>

#define READ_LOG 3
/* As experiments/places/counted/cpus.py has them. */
#define MIPS_OF_ALL 1000
#define ITERATION_INSTRUCTIONS 203

static const struct {
	const char *name;
	void (*run)(void);
} figures[] = {
	{"work:", fixed_work},	  {"locks:", lock_events}, {"fair:", fair_shares},
	{"critical:", critical_vcpu}, {"bursts:", joint_bursts},
};

static void mounted(const char *type, const char *where)
{
	mkdir(where, 0755);
	if (mount(type, where, type, 0, NULL))
		printf("FAILED mount %s\n", where);
}

static bool do_run(const char *run)
{
	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
		if (!strncmp(run, figures[i].name, strlen(figures[i].name))) {
			begin_run(run);
			figures[i].run();
			return true;
		}
	}
	printf("FAILED %s: no such figure\n", run);
	return false;
}

/* What the kernel must not have said. */
static bool is_clean(void)
{
	static char log[1 << 18];
	static const char *const bad[] = {"WARNING:", "BUG:", "Call Trace", "INFO:", "Oops"};
	int length = klogctl(READ_LOG, log, sizeof(log) - 1);

	log[length > 0 ? length : 0] = '\0';
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (strstr(log, bad[i])) {
			printf("FAILED the kernel said %.400s\n", strstr(log, bad[i]));
			return false;
		}
	}
	return true;
}

static char *word_of(char *line, const char *key)
{
	char *word = strstr(line, key);

	if (!word)
		return NULL;
	word += strlen(key);
	return strndup(word, strcspn(word, " \n"));
}

int main(void)
{
	static char line[4096];
	int fd, measuring = (int)sysconf(_SC_NPROCESSORS_ONLN) - 1;
	bool good = true;
	char *task;

	setvbuf(stdout, NULL, _IOLBF, 0);
	mounted("proc", "/proc");
	mounted("sysfs", "/sys");
	mounted("debugfs", "/sys/kernel/debug");
	mounted("cgroup2", "/sys/fs/cgroup");
	put("/sys/fs/cgroup/cgroup.subtree_control", "+cpu +cpuset");
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	keep_to(measuring, measuring);
	fd = open("/proc/cmdline", O_RDONLY);
	if (fd < 0 || read(fd, line, sizeof(line) - 1) <= 0)
		return 1;
	set_speed(MIPS_OF_ALL / (measuring + 1.0) / ITERATION_INSTRUCTIONS);
	task = word_of(line, "task=");
	for (char *run = strtok(task, ","); run; run = strtok(NULL, ","))
		good &= do_run(run);
	good &= is_clean();
	printf("GUEST-EXIT:%d\n", good ? 0 : 1);
	fflush(stdout);
	reboot(RB_AUTOBOOT);
	return 0;
}
