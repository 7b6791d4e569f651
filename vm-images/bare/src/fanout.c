/* SPDX-License-Identifier: Apache-2.0 */
/* vCPU 0 -> all helpers -> vCPU 0: the request waits for the slowest helper. */
#include "job.h"
#include "options.h"
#include "work.h"

static void begin(struct cpu *cpu, struct job *job)
{
	job->left = (uint32_t)options.helpers;
	for (uint32_t i = 0; i < options.helpers; i++)
		mailbox_post(cpu, helper(i), job);
}

static void help(struct cpu *cpu, struct job *job)
{
	const struct request *request = &job->request;

	work_us(cpu == helper(0) ? request->helper_us + request->straggler_us : request->helper_us);
	if (__atomic_sub_fetch(&job->left, 1, __ATOMIC_SEQ_CST) == 0)
		job_finish(cpu, job);
}

const struct load fanout_load = {.begin = begin, .help = help};
