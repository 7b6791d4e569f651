"""`dasec` with one policy more: `shuffle` changes many knobs of many vCPUs every period.

Run as a program with the arguments of `dasec`. Nothing else differs from the real command.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from types import MappingProxyType

from dasec import policies
from dasec.model import (
    THREAD_KNOBS,
    Core,
    Decision,
    Knob,
    Knobs,
    Limits,
    Period,
    PolicyState,
    Reason,
    VcpuId,
    Workload,
    WorkloadKnobs,
)
from dasec.policy import Kind

LATENCIES_NS = (1_500_000, 2_000_000, 4_000_000, 7_000_000, 11_000_000)
CAPS_PPM = (0, 150_000, 300_000, 900_000)
LENT_PPM = (0, 50_000, 100_000, 150_000)


class Shuffle:
    """Any values that a policy may choose; the same for the same period."""

    name = "shuffle"

    def initial_state(self) -> PolicyState:
        return PolicyState()

    def decide(self, period: Period, state: PolicyState) -> Decision:
        chance = random.Random(period.index)
        knobs = {
            vcpu: wanted
            for workload in period.workloads
            for vcpu, wanted in shuffled(workload, period, chance)
        }
        workloads = {name: WorkloadKnobs(capped(limits, chance)) for name, limits in period.limits.items()}
        reasons = [Reason(vcpu, knob, "shuffle") for vcpu in knobs for knob in THREAD_KNOBS]
        reasons += [Reason(vcpu, Knob.CAP, "shuffle") for one in workloads.values() for vcpu in one.caps]
        return Decision(knobs, tuple(reasons), state, workloads=workloads)


def capped(limits: Limits, chance: random.Random) -> dict[VcpuId, int]:
    """A cap for some; or, where each has a quota of its own, one lends to another, so that the sum stays."""
    if not limits.is_divided:
        return {vcpu: chance.choice(CAPS_PPM) for vcpu in limits.own if chance.random() < 0.3}
    lent_ppm = chance.choice(LENT_PPM)
    lender, borrower = chance.sample(sorted(limits.own), 2) if len(limits.own) > 1 else (None, None)
    by_ppm = {lender: -lent_ppm, borrower: lent_ppm}
    return {
        vcpu: own.quota_ppm + by_ppm.get(vcpu, 0) if by_ppm.get(vcpu, 0) else 0
        for vcpu, own in limits.own.items()
    }


def shuffled(workload: Workload, period: Period, chance: random.Random) -> Iterator[tuple[VcpuId, Knobs]]:
    ids = [vcpu.id for vcpu in workload.vcpus if vcpu.id in period.knobs]
    weights = dict(weight_pairs(ids, period, chance))
    for vcpu in ids:
        have = period.knobs[vcpu]
        latency_ns = chance.choice(LATENCIES_NS) if have.rescheduling_latency_ns is not None else None
        mask = None
        if have.affinity is not None and chance.random() < 0.3:
            mask = chance.choice((frozenset({Core(0)}), frozenset(period.topology.cores)))
        yield vcpu, Knobs(weights.get(vcpu), latency_ns, mask)


def weight_pairs(ids: list[VcpuId], period: Period, chance: random.Random) -> Iterator[tuple[VcpuId, int]]:
    """Of two vCPUs of a workload one gets what the other gives, so that the sum stays."""
    have = [(vcpu, weight) for vcpu in ids if (weight := period.knobs[vcpu].weight) is not None]
    chance.shuffle(have)
    for (giver, much), (taker, little) in zip(have[::2], have[1::2], strict=False):
        moved = chance.randrange(max(1, min(much - 512, 1536 - little, 200))) if much > 512 else 0
        yield giver, much - moved
        yield taker, little + moved


if __name__ == "__main__":
    kind = Kind("shuffle", lambda parameters: Shuffle())
    policies.POLICIES = MappingProxyType({**policies.POLICIES, kind.name: kind})
    from dasec.commands.cli import main

    main()
