/* SPDX-License-Identifier: Apache-2.0 */
#include "bell.h"
#include "spin.h"

void mailbox_post(struct cpu *from, struct cpu *to, struct job *job)
{
	struct mailbox *box = &to->mailbox;

	from->statistics.posted[to->id]++; /* before the other one can answer the client, who then asks for it */
	spin_lock(&box->lock);
	box->jobs[box->head % MAILBOX_SIZE] = job;
	__atomic_store_n(&box->head, box->head + 1, __ATOMIC_SEQ_CST);
	spin_unlock(&box->lock);
	bell_ring(from, to);
}

struct job *mailbox_take(struct cpu *cpu)
{
	struct mailbox *box = &cpu->mailbox;
	struct job *job = NULL;

	if (__atomic_load_n(&box->head, __ATOMIC_SEQ_CST) == box->tail)
		return NULL;
	spin_lock(&box->lock);
	job = box->jobs[box->tail++ % MAILBOX_SIZE];
	spin_unlock(&box->lock);
	return job;
}
