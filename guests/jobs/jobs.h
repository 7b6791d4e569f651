/* SPDX-License-Identifier: Apache-2.0 */
/* The jobs of a guest. Each prints records, lines `name key=value ...`; tests/vm judges them. */
#ifndef JOBS_H
#define JOBS_H

void job_granularity(void);
void job_shares(void);
void job_late(void);
void job_wakes(void);
void job_states(void);
void job_lifecycle(void);
void job_permissions(void);
void job_refusals(void);
void job_fuzz(void);
void job_stress(void);
void job_long_stress(void);
void job_race(void);
void job_pipe_unused(void);
void job_pipe_counted(void);
void job_pipe_controlled(void);
void job_messaging_unused(void);
void job_messaging_counted(void);
void job_messaging_controlled(void);

/* What an exec'd copy of this program does: prints its own row for job_lifecycle. */
void lifecycle_after_exec(void);

#endif
