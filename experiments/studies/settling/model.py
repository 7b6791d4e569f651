"""The daemon's loop on a host that is a table: the real policy, plan and budget, a clock that we set, and
what a look costs as it was measured (docs/overhead.md). The same numbers each time, on any machine.

Workloads of 16 vCPUs: a service of eight (one that splits each request, seven that help it) beside eight of
background, which sleep before a step and compute after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dasec.budget import Account, Budget, Outlay
from dasec.critical import Critical, CriticalParameters
from dasec.model import (
    IDLE,
    Change,
    Core,
    Knob,
    Knobs,
    Period,
    PolicyState,
    Topology,
    Usage,
    Vcpu,
    VcpuId,
    Workload,
)
from dasec.plan import plan

MS = 1_000_000
PERIOD_NS = 80 * MS
SERVERS, BACKGROUND = 8, 8
REQUESTS_MS = 10
"""One request in so many, in each workload."""

LOOK_NS = {16: 1_300_000, 64: 2_500_000, 256: 6_500_000}
"""CPU time of a look by the number of vCPUs, where nobody is judged: docs/overhead.md, the first table."""

CHANGE_NS = 84_000
"""What a weight adds to a look: (21.1 - 6.5) ms for 173 weights, of the same table."""

ENOUGH = 20**0.5
"""Below a group of its workload's own critical gives a server twenty times the weight of background."""

NEUTRAL = Knobs(1024, 4_000_000, None)


class Machine:
    """So many vCPUs, what they have done since the last look, and their knobs."""

    def __init__(self, vcpus: int, cores: int) -> None:
        self._cores = tuple(map(Core, range(cores)))
        self.workloads = tuple(
            Workload(
                f"w{number}",
                1024,
                tuple(
                    Vcpu(
                        VcpuId(1000 + number, 100_000 + 100 * number + row, 7),
                        f"t{row}",
                        frozenset(self._cores),
                    )
                    for row in range(SERVERS + BACKGROUND)
                ),
                None,
                True,
            )
            for number in range(vcpus // (SERVERS + BACKGROUND))
        )
        ids = [vcpu.id for workload in self.workloads for vcpu in workload.vcpus]
        self.knobs: dict[VcpuId, Knobs] = dict.fromkeys(ids, NEUTRAL)
        self._core_of = {vcpu: self._cores[number % cores] for number, vcpu in enumerate(ids)}

    def period(self, index: int, length_ns: int, stepped_ns: int, unwatched: bool) -> Period:
        """What happened in a time in the last part of which background computed."""
        usage = {
            vcpu.id: _uncounted(used) if unwatched and used is not IDLE else used
            for workload in self.workloads
            for vcpu, used in zip(workload.vcpus, _used(workload, length_ns, stepped_ns), strict=True)
        }
        topology = Topology(self._cores, dict.fromkeys(self._cores, 0))
        seen = topology, self.workloads, usage, dict(self.knobs), self._core_of
        return Period(index, length_ns, *seen, unwatched=unwatched)

    def preference(self) -> float:
        """A server's weight over that of background in the workload where it is least."""
        return min(
            min(self._weight(vcpu) for vcpu in each.vcpus[:SERVERS])
            / max(self._weight(vcpu) for vcpu in each.vcpus[SERVERS:])
            for each in self.workloads
        )

    def _weight(self, vcpu: Vcpu) -> int:
        return self.knobs[vcpu.id].weight or 0


def _used(workload: Workload, length_ns: int, stepped_ns: int) -> Iterator[Usage]:
    requests = length_ns // (REQUESTS_MS * MS)
    main, *helpers = (vcpu.id for vcpu in workload.vcpus[:SERVERS])
    own, part = 500_000 * requests, 600_000 * requests
    yield _usage(own, own, [(helper, requests) for helper in helpers], timer=requests)
    for _ in helpers:
        yield _usage(part, part, [(main, requests)])
    bursts = max(1, 2 * stepped_ns // PERIOD_NS)
    for _ in range(BACKGROUND):
        yield _usage(stepped_ns // 5, stepped_ns // 3, [], timer=bursts) if stepped_ns else IDLE


def _uncounted(used: Usage) -> Usage:
    """As it is seen while wake-ups are not followed."""
    return used._replace(wakers=(), wakeups=None, external_wakeups=None, chain_ns=None)


def _usage(run_ns: int, ready_ns: int, woken_by: Sequence[tuple[VcpuId, int]], timer: int = 0) -> Usage:
    wakeups = sum(count for _, count in woken_by) + timer
    return IDLE._replace(
        consumed_ns=run_ns,
        ready_ns=ready_ns,
        dispatches=wakeups,
        wakers=tuple(woken_by),
        wakeups=wakeups,
        external_wakeups=0,
        chain_ns=2 * run_ns if woken_by else 0,
    )


class Daemon:
    """The loop: look, decide, write, pay, rest."""

    def __init__(self, machine: Machine, look_ns: int, budget: Budget) -> None:
        self.machine, self._look_ns, self._budget = machine, look_ns, budget
        self._policy = Critical(CriticalParameters())
        self._state: PolicyState = self._policy.initial_state()
        self._account, self._outlay = Account(0, 0, 0), Outlay()
        self._index = self._cpu_ns = 0
        self.unwatched = False
        self.clock_ns = 0

    @property
    def next_ns(self) -> int:
        """When it looks next."""
        return self.clock_ns + self._outlay.rest * PERIOD_NS

    def look(self, computed_ns: int) -> None:
        """The next look. Background computed for so long since the last one."""
        length_ns = self.next_ns - self.clock_ns
        self.clock_ns = self.next_ns
        period = self.machine.period(self._index, length_ns, computed_ns, self.unwatched)
        decision = self._policy.decide(period, self._state)
        changes = plan(period, decision).changes
        for change in changes:
            self.machine.knobs[change.vcpu] = _with(self.machine.knobs[change.vcpu], change)
        self._cpu_ns += self._look_ns + CHANGE_NS * sum(change.knob is Knob.WEIGHT for change in changes)
        self._account, self._outlay = self._budget.pay(self._account, self.clock_ns, self._cpu_ns, decision)
        self._state, self.unwatched, self._index = decision.state, decision.unwatched, self._index + 1


def _with(knobs: Knobs, change: Change) -> Knobs:
    """As they are once it is written. Below a group of its own a workload has these two."""
    assert isinstance(change.new, int), change
    if change.knob is Knob.WEIGHT:
        return knobs._replace(weight=change.new)
    return knobs._replace(rescheduling_latency_ns=change.new)


class Step(NamedTuple):
    """A time in which background computed: when it began, and the preference at each look until it ended."""

    began_ns: int
    seen: tuple[tuple[int, float], ...]

    @property
    def settled_ns(self) -> int | None:
        """How long after it began the preference had come half of the way to 20 for good, in logarithms: as
        in the suite of loads (experiments/studies/loads/settling.py). None: it never had."""
        late = [number for number, (_, preference) in enumerate(self.seen) if preference < ENOUGH]
        first = late[-1] + 1 if late else 0
        return self.seen[first][0] - self.began_ns if first < len(self.seen) else None


def steps(vcpus: int, cores: int, percent: float, times: Sequence[tuple[int, int]]) -> list[Step]:
    """What becomes of steps that last from and until these times, in ns, under a budget of so much of one
    core."""
    daemon = Daemon(Machine(vcpus, cores), LOOK_NS[vcpus], Budget(percent, PERIOD_NS))
    found = []
    for begin_ns, end_ns in times:
        while daemon.next_ns < begin_ns:
            daemon.look(0)
        seen = []
        while daemon.next_ns < end_ns:
            daemon.look(daemon.next_ns - max(daemon.clock_ns, begin_ns))
            seen.append((daemon.clock_ns, daemon.machine.preference()))
        daemon.look(end_ns - daemon.clock_ns)
        found.append(Step(begin_ns, tuple(seen)))
    return found
