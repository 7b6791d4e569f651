/* SPDX-License-Identifier: Apache-2.0 */
/* vCPU 0 -> helper 0 -> helper 1 -> ... -> vCPU 0, which meanwhile takes the next request; one stage is slow. */
#include "job.h"
#include "options.h"
#include "work.h"

static void begin(struct cpu *cpu, struct job *job)
{
	mailbox_post(cpu, helper(0), job);
}

/* The slow stage has stages before and behind it, as a bottleneck usually has. */
static uint32_t stage_us(const struct job *job)
{
	const struct request *request = &job->request;

	return job->step == options.helpers / 2 ? request->helper_us + request->straggler_us : request->helper_us;
}

static void help(struct cpu *cpu, struct job *job)
{
	work_us(stage_us(job));
	if (++job->step < options.helpers)
		mailbox_post(cpu, helper(job->step), job);
	else
		job_finish(cpu, job);
}

const struct load pipeline_load = {.begin = begin, .help = help};
