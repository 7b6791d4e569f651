"""Resource conflict resolver: separates the vCPUs that TSA and RLA cannot reconcile on one core (§4.2).

**The paper.** "For each core, RCR calculates an aggregated amount of time-slice for the vCPUs scheduled on
the core. […] If the largest aggregated amount is greater than the smallest aggregated amount by 10%, RCR
tries to balance the aggregated amounts by swapping some of the vCPUs on the two cores." And for vCPUs with
low rescheduling latencies: it counts how often they "are preempted" or "have waited a long time exceeding
their rescheduling latencies"; where the most conflicts of a core exceed the fewest by 2x, "RCR selects half
of the vCPUs with low rescheduling latencies on the core with the most conflicts and half of the vCPUs with
high rescheduling latencies on the cores with the fewest conflicts, and then swaps the vCPUs".

**Slices** (`slices.py`). With the slices after TSA, summed per core: while the largest sum exceeds the
smallest by more than 10 %, swap the pair that leaves the smallest difference, at most `max_slice_swaps`
times; so the fewest swaps that suffice, each of them the best there is. A swap that does not shrink the
difference by a tenth is not made.

**Latencies** (`latencies.py`). With the latencies after RLA: a vCPU is low if its latency is below the
median of all vCPUs; where the median is the smallest value, if it is at the median. Conflicts of the low
ones are summed per core; if the most exceed 2 × the fewest and are at least `min_conflicts`, half of the
low ones there (rounded down, those with most conflicts first) are swapped with as many high ones of the
other core (the highest first).

**Always** (`layout.py`).

- A swap is two affinity changes, each to a single core, so the multiset of occupied cores stays. A core
  without any vCPU therefore takes no part: there is nobody to swap with.
- Inside the vCPU's allowed CPUs, and inside one NUMA node unless asked: each node is balanced on its own.
  Cores of different capacity are not evened out, and SMT siblings do not change places.
- Never onto a core where a sibling stays, while a core that it may use is without one. (If it was alone on
  the core it leaves, that core counts.)
- Who was moved stays for `cooldown_periods`. Who has just come has no usage, and is not judged yet.
- A vCPU that cannot be moved (no affinity knob) counts in the sums, where it is.
- A sleeper that was moved is counted at its pin, though it gets there only when it wakes up.
- Ties go to the lower core number and the lower VcpuId.
"""

from .parameters import RcrParameters
from .resolve import Resolution, resolve

__all__ = ["RcrParameters", "Resolution", "resolve"]
