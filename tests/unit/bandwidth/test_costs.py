"""What limits cost and what caps spare: in periods by hand, and against the simulated kernel."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dasec.bandwidth.costs import Costs, cost_of
from dasec.model import Limits, OwnLimit, Period, ThreadState, Usage, VcpuId

from .cfs import LOOK_US, Thread, World, busy, hog, period_of

S = 1_000_000
LOOK_NS = LOOK_US * 1000
SERVES, HOG, OTHER = (VcpuId(1, tid, 7) for tid in (1, 2, 3))


def used(*percent: int) -> dict[VcpuId, Usage]:
    return {
        vcpu: Usage(LOOK_NS * part // 100, 0, 1, ThreadState.RUNNING, 0)
        for vcpu, part in zip((SERVES, HOG, OTHER), percent, strict=True)
    }


def limited(usage: dict[VcpuId, Usage], own: dict[VcpuId, OwnLimit], throttled_ns: int = 0) -> Period:
    return period_of(usage, Limits(2_000_000, 0, throttled_ns, own), LOOK_NS)


def cost(period: Period) -> tuple[int, int]:
    found = cost_of(period, period.workloads[0], period.limits["vm"])
    return found.stopped_ns, found.spared_ns


FREE = dict.fromkeys((SERVES, HOG, OTHER), OwnLimit(0, 0))
CAPPED = {**FREE, HOG: OwnLimit(800_000, 100), OTHER: OwnLimit(800_000, 100)}


def test_without_caps_nothing_is_spared() -> None:
    assert cost(limited(used(30, 85, 85), FREE, 9000)) == (9000, 0)


def test_caps_that_stop_somebody_spare_what_the_limit_would_have_stopped() -> None:
    # They want 0.3 + 1 + 1 of 2 cores: all of them would be stopped for 0.3 of 2.3 of the time.
    assert cost(limited(used(30, 80, 80), CAPPED)) == (0, LOOK_NS - LOOK_NS * 20 // 23)


def test_caps_below_a_limit_that_would_not_be_reached_spare_nothing() -> None:
    idle = {vcpu: OwnLimit(own.present_ppm, 0) for vcpu, own in CAPPED.items()}
    assert cost(limited(used(30, 50, 50), idle)) == (0, 0)


def test_what_the_limit_stops_in_spite_of_caps_is_not_spared() -> None:
    stopped, spared = cost(limited(used(30, 80, 80), CAPPED, 4_000_000))
    assert (stopped, spared) == (4_000_000, LOOK_NS - LOOK_NS * 20 // 23 - 4_000_000)


def test_a_loan_spares_its_borrower_what_it_used_above_its_own_quota() -> None:
    own = {SERVES: OwnLimit(600_000, 0, 400_000), HOG: OwnLimit(300_000, 7, 400_000)}
    own[OTHER] = OwnLimit(300_000, 7, 400_000)
    period = limited(used(55, 30, 30), own)
    divided = replace(period, limits={"vm": Limits(0, 0, 14, own)})
    assert cost(divided) == (14, LOOK_NS * 15 // 100)


def test_who_used_the_limit_up_counts_only_while_it_stops_somebody() -> None:
    costs = Costs()
    costs.add(limited(used(90, 10, 0), FREE))
    costs.add(limited(used(20, 100, 80), FREE, 5))
    costs.add(limited(used(30, 80, 80), CAPPED))
    workload = limited(used(0, 0, 0), FREE).workloads[0]
    assert costs.parts(workload) == (("t2", 50), ("t3", 40), ("t1", 10))
    assert [costs.own_ns(one) for one in (SERVES, HOG, OTHER)] == [0, 100, 100]
    costs.keep({HOG})
    assert costs.parts(workload) == (("t2", 100),)
    assert [costs.own_ns(one) for one in (HOG, OTHER)] == [100, 0]


@pytest.mark.parametrize(("limit", "critical", "hogs"), [(2, 30, 3), (4, 30, 5), (2, 60, 3)])
def test_what_caps_spare_is_what_the_plain_limit_stops_in_the_simulation(
    limit: float, critical: int, hogs: int
) -> None:
    def world() -> World:
        threads = [
            Thread(VcpuId(1, 0, 7), busy(critical)),
            *(Thread(VcpuId(1, 9 + at, 7), hog) for at in range(hogs)),
        ]
        return World(int(limit * S), threads, frozenset({threads[0].id}))

    plain, capped, costs = world(), world(), Costs()
    plain.managed = False
    plain.run(20 * S)
    capped.seen = costs.add
    capped.run(20 * S)
    stopped_s = sum(thread.stopped_us for thread in plain.threads[1:]) / hogs / S
    assert costs.spared_ns("vm") / 1e9 == pytest.approx(stopped_s, rel=0.25)
