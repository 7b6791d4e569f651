// SPDX-License-Identifier: GPL-2.0-only
/* A sched_ext scheduler that is not ours: a name, and the kernel's defaults for all that it might do. */
#include "../../../daemon/bpf/scx_kernel.h"

char LICENSE[] SEC("license") = "GPL";

/* libbpf 1.1 crashes on an object without any program. */
SEC("struct_ops/other_init")
__s32 BPF_PROG(other_init)
{
	return 0;
}

SEC(".struct_ops")
struct sched_ext_ops other_ops = {
	.init = (void *)other_init,
	.timeout_ms = 5000,
	.name = "somebody_elses",
};
