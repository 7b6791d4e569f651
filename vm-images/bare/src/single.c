/* SPDX-License-Identifier: Apache-2.0 */
/* vCPU 0 -> one helper, in turn -> vCPU 0. */
#include "job.h"
#include "options.h"
#include "work.h"

static void begin(struct cpu *cpu, struct job *job)
{
	mailbox_post(cpu, helper(job->request.id % (uint32_t)options.helpers), job);
}

static void help(struct cpu *cpu, struct job *job)
{
	work_us(job->request.helper_us);
	job_finish(cpu, job);
}

const struct load single_load = {.begin = begin, .help = help};
