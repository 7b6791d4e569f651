"""A small CFS in which each thread has a quota of its own, and the rule that lends.

As the kernel: a write hands out the new quota at once, and the period that runs ends when it was to end
(tg_set_cfs_bandwidth() leaves the timer alone); then the new period begins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dasec.bandwidth.loans import Loans, lent_after
from dasec.bandwidth.rates import Cap, cap_of
from dasec.model import CORE_PPM, Limits, OwnLimit, Period, ThreadState, Usage, VcpuId

from .cfs import LOOK_US, STEP_US, Demand, period_of

GIVEN_PERIOD_US = 100_000


@dataclass
class Limited:
    """A thread below its own quota. `in_force_ppm`: what we wrote, 0: the quota that it was given."""

    id: VcpuId
    arrives: Demand
    given_ppm: int
    in_force_ppm: int = 0
    backlog_us: int = 0
    ran_us: int = 0
    throttled_us: int = 0
    left_us: int = 0
    refill_at_us: int = 0

    @property
    def quota_ppm(self) -> int:
        return self.in_force_ppm or self.given_ppm

    @property
    def quota(self) -> Cap:
        if self.in_force_ppm:
            return cap_of(self.in_force_ppm)
        return Cap(self.given_ppm * GIVEN_PERIOD_US // CORE_PPM, GIVEN_PERIOD_US)

    def write(self, ppm: int) -> None:
        self.in_force_ppm = ppm
        self.left_us = self.quota.quota_us

    def step(self, now_us: int) -> None:
        if now_us >= self.refill_at_us:
            self.left_us = self.quota.quota_us + min(0, self.left_us)
            self.refill_at_us = now_us + self.quota.period_us
        self.backlog_us += self.arrives(now_us)
        want = min(STEP_US, self.backlog_us)
        if want and self.left_us <= 0:
            self.throttled_us += STEP_US
            return
        self.backlog_us -= want
        self.ran_us += want
        self.left_us -= want


@dataclass
class DividedWorld:
    """One workload on enough cores. `fails`: which writes the kernel refuses."""

    threads: Sequence[Limited]
    waited_for: frozenset[VcpuId]
    now_us: int = 0
    lends: bool = True
    fails: Callable[[], bool] = lambda: False
    loans: Loans | None = None
    writes: list[tuple[int, VcpuId, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._seen = {thread.id: (0, 0) for thread in self.threads}
        self._of = {thread.id: thread for thread in self.threads}

    def run(self, for_us: int) -> None:
        until = self.now_us + for_us
        while self.now_us < until:
            for thread in self.threads:
                thread.step(self.now_us)
            self.now_us += STEP_US
            if self.lends and self.now_us % LOOK_US == 0:
                self.look()

    def look(self) -> None:
        """Observe, decide, and write one after the other; the sum holds at every moment."""
        period = self._period()
        changes, self.loans = lent_after(
            period, period.workloads[0], period.limits["vm"], self.waited_for, self.loans
        )
        for vcpu, ppm in changes.items():
            if not self.fails():
                before_ppm = self.in_force_ppm()
                self._of[vcpu].write(ppm)
                self.writes.append((self.now_us, vcpu, ppm))
                assert self.in_force_ppm() <= max(before_ppm, self.given_ppm())

    def given_ppm(self) -> int:
        return sum(min(CORE_PPM, thread.given_ppm) for thread in self.threads)

    def in_force_ppm(self) -> int:
        return sum(min(CORE_PPM, thread.quota_ppm) for thread in self.threads)

    def used_us(self) -> int:
        return sum(thread.ran_us for thread in self.threads)

    def _period(self) -> Period:
        usage: dict[VcpuId, Usage] = {}
        own: dict[VcpuId, OwnLimit] = {}
        for thread in self.threads:
            ran, throttled = self._seen[thread.id]
            self._seen[thread.id] = (thread.ran_us, thread.throttled_us)
            usage[thread.id] = Usage((thread.ran_us - ran) * 1000, 0, 1, ThreadState.RUNNING, 0)
            stopped_ns = (thread.throttled_us - throttled) * 1000
            own[thread.id] = OwnLimit(thread.in_force_ppm, stopped_ns, thread.given_ppm)
        return period_of(usage, Limits(0, 0, 0, own), LOOK_US * 1000)
