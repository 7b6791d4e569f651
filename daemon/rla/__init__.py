"""Rescheduling latency adjuster: who could have made progress starts sooner (§4.2).

**The paper.** "For a vCPU that is in a 'ready' or 'running' state at the end of the previous period, the
vCPU cannot consume its time-slice quickly. This may be caused by the rescheduling delay. Thus, the
component decreases the rescheduling latency of the vCPU by 10%. For the vCPUs that have consumed their
time-slice and become idle at the end of the previous period, the component increases their rescheduling
latencies." And where a latency "has been reduced to a minimal value allowed by the system, if a vCPU still
cannot consume its time slice", the vCPUs that sent it wake-ups are found; "then it reduces the rescheduling
latencies of these source vCPUs".

**The rule.** After TSA, for each vCPU at the end of the period:

| at the end | slice not exhausted | slice exhausted |
|---|---|---|
| ready or running | latency × 0.90, not below the floor (`rla.cut`) | unchanged: TSA's business |
| idle | unchanged: it had no more to do | latency / 0.90, not above the ceiling (`rla.raise`) |

A vCPU at the floor for which `rla.cut` holds again hands one step of 10 % to the siblings that woke it in
the period, divided among them by count (`rla.source`; docs/decisions/0010-rla-sources.md).

**What the paper leaves open.**

- Floor, ceiling and start are those measured on EEVDF, where the latency is the thread's slice; the paper
  works on CFS's wake-up granularity and names no values. The start value is written when RLA sees a vCPU
  first, and no other rule judges the vCPU in that period.
- The step up is the inverse of the step down, so that one of each cancel out.
- `respect_burst`: the floor of a vCPU is never below its average burst in the period (consumed /
  dispatches). On EEVDF a slice shorter than the burst starts the thread at once and interrupts it in the
  middle (docs/measurements.md). This is no rule of the paper; turn it off for the paper to the letter.
- A vCPU has no rule while its state is unknown, and none before it has usage.
- No value that is decided here lies outside [floor, ceiling]. One that was put outside by others stays
  there until a rule moves it towards the range.
"""

from .adjust import Adjustment, adjust
from .parameters import CEILING_NS, FLOOR_NS, START_NS, RlaParameters

__all__ = ["CEILING_NS", "FLOOR_NS", "START_NS", "Adjustment", "RlaParameters", "adjust"]
