"""A small CFS with bandwidth control: one group with a limit, its threads in groups of their own, in steps.

As the kernel: a quota is handed out in each period, less what was overdrawn, and in full whenever it is
written (tg_set_cfs_bandwidth()); a thread runs while its own group and the one around have some left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from dasec.bandwidth.rates import cap_of
from dasec.bandwidth.rule import CapMemory, caps_after
from dasec.model import (
    Core,
    Knobs,
    Limits,
    OwnLimit,
    Period,
    ThreadState,
    Topology,
    Usage,
    Vcpu,
    VcpuId,
    Workload,
)

STEP_US = 250
LOOK_US = 80_000
OUTER_US = 100_000

Demand = Callable[[int], int]
"""How much work (µs) arrives in the step that begins then."""


@dataclass
class Pool:
    """A group's quota."""

    quota_us: int
    period_us: int
    left_us: int = 0
    throttled_us: int = 0

    def write(self, quota_us: int, period_us: int) -> None:
        self.quota_us, self.period_us, self.left_us = quota_us, period_us, quota_us

    def tick(self, now_us: int) -> None:
        if now_us % self.period_us < STEP_US:
            self.left_us = self.quota_us + min(0, self.left_us)


@dataclass
class Thread:
    """What it wants, has not done yet, and did; `hog`: it always wants more."""

    id: VcpuId
    arrives: Demand
    backlog_us: int = 0
    ran_us: int = 0
    own: Pool | None = None
    cap_ppm: int = 0
    stopped_us: int = 0
    latest_us: int = 0


@dataclass
class World:
    """One limited workload on enough cores, and the rule that looks at it."""

    limit_ppm: int
    threads: list[Thread]
    waited_for: frozenset[VcpuId]
    now_us: int = 0
    managed: bool = True
    writes: list[tuple[int, VcpuId, int]] = field(default_factory=list)
    holding: CapMemory | None = None
    seen: Callable[[Period], None] | None = None

    def __post_init__(self) -> None:
        self.pool = Pool(self.limit_ppm * OUTER_US // 1_000_000, OUTER_US)
        self.pool.left_us = self.pool.quota_us
        self._seen = {thread.id: (0, 0) for thread in self.threads}
        self._throttled = 0

    def run(self, for_us: int) -> None:
        until = self.now_us + for_us
        while self.now_us < until:
            self._step()
            if self.managed and self.now_us % LOOK_US == 0:
                self._look()

    def used_us(self) -> int:
        return sum(thread.ran_us for thread in self.threads)

    def _step(self) -> None:
        self.pool.tick(self.now_us)
        turn = self.now_us // STEP_US % len(self.threads)
        for thread in (*self.threads[turn:], *self.threads[:turn]):  # nobody is always first at the pool
            if thread.own:
                thread.own.tick(self.now_us)
            thread.backlog_us += thread.arrives(self.now_us)
            want = min(STEP_US, thread.backlog_us)
            if thread.own and want and thread.own.left_us <= 0:
                thread.own.throttled_us += STEP_US
                continue
            if want and self.pool.left_us <= 0:
                self.pool.throttled_us += STEP_US
                thread.stopped_us += STEP_US
                continue
            thread.backlog_us -= want
            thread.ran_us += want
            self.pool.left_us -= want
            if thread.own:
                thread.own.left_us -= want
        self.now_us += STEP_US

    def _look(self) -> None:
        period = self._period()
        if self.seen:
            self.seen(period)
        capped = caps_after(period, period.workloads[0], self.waited_for, self.holding)
        self.holding = capped.holding
        for thread in self.threads:
            if thread.id in capped.wanted:
                self._write(thread, capped.wanted[thread.id])

    def _write(self, thread: Thread, ppm: int) -> None:
        self.writes.append((self.now_us, thread.id, ppm))
        thread.cap_ppm = ppm
        if not ppm:
            thread.own = None
            return
        before = thread.own.throttled_us if thread.own else 0
        thread.own = Pool(0, 1, throttled_us=before)
        thread.own.write(*cap_of(ppm))

    def _period(self) -> Period:
        usage: dict[VcpuId, Usage] = {}
        own: dict[VcpuId, OwnLimit] = {}
        for thread in self.threads:
            ran, stopped = self._seen[thread.id]
            throttled = thread.own.throttled_us if thread.own else 0
            usage[thread.id] = Usage((thread.ran_us - ran) * 1000, 0, 1, ThreadState.RUNNING, 0)
            own[thread.id] = OwnLimit(thread.cap_ppm, max(0, throttled - stopped) * 1000)
            self._seen[thread.id] = (thread.ran_us, throttled)
        limits = Limits(self.limit_ppm, 0, (self.pool.throttled_us - self._throttled) * 1000, own)
        self._throttled = self.pool.throttled_us
        return period_of(usage, limits, LOOK_US * 1000)


def period_of(usage: Mapping[VcpuId, Usage], limits: Limits, length_ns: int) -> Period:
    """One workload called "vm"."""
    cores = tuple(map(Core, range(len(usage))))
    vcpus = tuple(Vcpu(one, f"t{one.tid}", frozenset(cores)) for one in usage)
    knobs = dict.fromkeys(usage, Knobs(None, None, None))
    topology = Topology(cores, dict.fromkeys(cores, 0))
    workloads = (Workload("vm", 1024, vcpus),)
    return Period(0, length_ns, topology, workloads, usage, knobs, {}, {"vm": limits})


def hog(now_us: int) -> int:
    """More than it can do."""
    return STEP_US


def busy(percent: int, burst_us: int = 2000) -> Demand:
    """Bursts at even distances."""
    every = burst_us * 100 // percent // STEP_US * STEP_US

    def arrives(now_us: int) -> int:
        return burst_us if now_us % every == 0 else 0

    return arrives
