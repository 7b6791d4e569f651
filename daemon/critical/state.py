"""What the policy `critical` remembers from period to period."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..bandwidth.loans import Loans
from ..bandwidth.rule import CapMemory
from ..model import Knobs, PolicyState, VcpuId
from ..policy import UNSHOWN
from .crowd import Cpus, Crowd
from .latency import Latencies
from .memory import Memory
from .weights import Balance


@dataclass(frozen=True, slots=True)
class CriticalState(PolicyState):
    """`neutral`: the weight of each vCPU when it was first seen. `blind`: workloads whose wake-ups nobody
    counts, where the policy therefore sees nothing. `balances`: what each workload owes (weights.py).
    `crowds`: how crowded each set of CPUs is (crowd.py). `excess`: the rank so far, in millionths, of each
    vCPU that `memories` holds. `calm`: how many looks in a row found nothing to do, `pause_ns`: for how long
    wake-ups need not be followed (calm.py).
    `latencies`: what those had who yield (latency.py). `late`: by how much each workload is behind (late.py).
    `holdings`: what is known of workloads whose limit binds or did (bandwidth/rule.py).
    `loans`: what is known of workloads whose vCPUs have quotas of their own (bandwidth/loans.py). `wished`:
    for whom something was wished at the last look, with the knobs then. If these are the same still, as where
    the guard keeps the policy off or the kernel refuses, to wish again is not to act.
    """

    neutral: tuple[tuple[VcpuId, int], ...] = ()
    blind: tuple[str, ...] = ()
    balances: tuple[tuple[str, Balance], ...] = field(default=(), metadata=UNSHOWN)
    crowds: tuple[tuple[Cpus, Crowd], ...] = field(default=(), metadata=UNSHOWN)
    memories: tuple[Memory, ...] = field(default=(), metadata=UNSHOWN)
    excess: tuple[int, ...] = field(default=(), metadata=UNSHOWN)
    calm: int = field(default=0, metadata=UNSHOWN)
    pause_ns: int = field(default=0, metadata=UNSHOWN)
    latencies: Latencies = field(default=(), metadata=UNSHOWN)
    late: tuple[tuple[str, int], ...] = field(default=(), metadata=UNSHOWN)
    holdings: tuple[CapMemory, ...] = field(default=(), metadata=UNSHOWN)
    loans: tuple[Loans, ...] = field(default=(), metadata=UNSHOWN)
    wished: tuple[tuple[VcpuId, Knobs], ...] = field(default=(), metadata=UNSHOWN)
