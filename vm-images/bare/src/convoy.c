/* SPDX-License-Identifier: Apache-2.0 */
/* vCPU 0 -> one helper, in turn -> vCPU 0; helpers share a lock with a holder: a preempted holder stops them all. */
#include "convoy.h"

#include "job.h"
#include "options.h"
#include "sleep_lock.h"
#include "work.h"

static struct sleep_lock lock;

void convoy_hold(struct cpu *cpu, uint64_t us)
{
	sleep_lock(cpu, &lock);
	work_us(us);
	sleep_unlock(cpu, &lock);
}

static void begin(struct cpu *cpu, struct job *job)
{
	mailbox_post(cpu, helper(job->request.id % (uint32_t)options.helpers), job);
}

static void help(struct cpu *cpu, struct job *job)
{
	work_us(job->request.helper_us);
	convoy_hold(cpu, job->request.lock_us);
	job_finish(cpu, job);
}

const struct load convoy_load = {.begin = begin, .help = help};
