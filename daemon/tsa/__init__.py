"""Time-slice allocator: who needs more of the workload's CPU time gets it from its siblings (§4.2).

**The paper.** "For a vCPU that has been preempted earlier due to the depletion of time slice, the component
increases its time-slice. […] the component increases the weight by 10%. The component keeps the total
weight of the vCPUs in a VM fixed. Thus, it reduces the weight of other vCPUs accordingly based on their
original weights."

**The rule.** In each workload, the vCPUs that exhausted their slice and are ready at the end of the period
(they want to go on and are not on a core) get weight × 1.10. All others are scaled by one factor, so that
the sum is unchanged. If nobody is like that, or everybody is, nothing changes: there is nobody to take
from.

**Which sum.** That of the weights with which those who are there came. Threads of a VM are the same for as
long as it runs, those of a container come and go. Who goes leaves what it gave to its siblings, or takes what
it had of them; so then all are scaled by one factor (docs/decisions/0126-whose-weight.md).

**What the paper leaves open.**

- Bounds: [1/8, 8] × the mean weight. Without them a sleeper's weight would decay towards zero, and it would
  need dozens of periods to recover after it wakes up.
- At the bounds: a vCPU that scaling would push below the lower bound stays there, and the others give more.
  When all others are at the lower bound, the hungry ones share what there is in proportion.
- Whole numbers: weights are integers and the sum holds exactly. The hungry ones round to nearest; what
  remains is apportioned by largest remainder, ties to the lower VcpuId (`apportion.py`).
- A vCPU whose weight is not ours to write stays out, as if it had gone. One that has just
  come counts as "other": it is scaled, but not judged.

What a weight does on the host depends on where the siblings are: on different cores it decides how much the
workload gets on each core, on a single core it moves time inside the workload only. The reason of every
raise says on how many cores the workload was (`cores`).
"""

from .allocate import Allocation, reweigh
from .apportion import apportion
from .parameters import MAX_WEIGHT_SPAN, TsaParameters

__all__ = ["MAX_WEIGHT_SPAN", "Allocation", "TsaParameters", "apportion", "reweigh"]
