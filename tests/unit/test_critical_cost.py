"""What deciding costs for 256 vCPUs in 16 workloads: printed, not judged, because the machine may be busy."""

from __future__ import annotations

import random
import time
from dataclasses import replace

import pytest

from dasec.model import Period, Usage
from dasec.plan import plan
from dasec.policies import Parameters, policy_named

from ..builders import ASLEEP, MS, Group, Row, period

WORKLOADS, MEMBERS, PERIODS, WARM = 16, 16, 60, 20


def busy(chance: random.Random, made: Period) -> Period:
    """Half of each workload is a fan-out, half is background with bursts of 10 ms."""
    usage = {}
    for workload in made.workloads:
        ids = [vcpu.id for vcpu in workload.vcpus]
        main, *helpers = ids[: len(ids) // 2]
        for vcpu in ids:
            if vcpu == main:
                wakers = tuple((helper, chance.randint(1, 6)) for helper in helpers)
            else:
                wakers = ((main, chance.randint(1, 6)),) if vcpu in helpers else ()
            woken = sum(count for _, count in wakers)
            bursts = woken or chance.randint(0, 4)
            run_ns = round(bursts * (0.6 if woken else 10) * MS)
            chain_ns = run_ns if woken else 0
            usage[vcpu] = Usage(run_ns, run_ns // 2, bursts, ASLEEP, 0, wakers, bursts, 0, chain_ns)
    return replace(made, usage=usage)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dasec", "critical"])
def test_what_critical_costs_beside_dasec(name: str) -> None:
    chance = random.Random(1)
    made = period(*[Group(f"w{each}", [Row()] * MEMBERS) for each in range(WORKLOADS)], cores=32)
    policy = policy_named(name, Parameters())
    state = policy.initial_state()
    times_us, writes = [], 0
    for _ in range(PERIODS):
        made = busy(chance, made)
        began_ns = time.thread_time_ns()
        decision = policy.decide(made, state)
        times_us.append((time.thread_time_ns() - began_ns) // 1000)
        changes = plan(made, decision).changes
        knobs = dict(made.knobs)
        for change in changes:
            if isinstance(change.new, int) and name == "critical":
                knobs[change.vcpu] = knobs[change.vcpu]._replace(weight=change.new)
        made, state = replace(made, knobs=knobs), decision.state
        writes += len(changes)
    steady = sorted(times_us[WARM:])
    print(
        f"\n{name}: best {steady[0]} us, median {steady[len(steady) // 2]} us, {writes / PERIODS:.0f} writes"
    )
    assert steady
