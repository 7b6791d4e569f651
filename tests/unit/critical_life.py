"""One workload under the policy `critical` that does the same in every period, worked by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dasec.critical import Critical, CriticalParameters
from dasec.model import Decision, Knobs, Period, PolicyState, VcpuId
from dasec.plan import plan
from dasec.policy import Policy

from ..builders import Group, Row, period, vcpu_id
from ..properties.invariants import after

BUSY = 40
"""Periods until everything has settled."""


def background(**more: object) -> Row:
    """Two bursts of 10 ms on its own timer, after 10 ms of waiting each."""
    return replace(Row(20, ready_ms=20, wakeups=2, external=0, chain_ms=0), **more)  # type: ignore[arg-type]


def short(run_ms: float, *woken_by: tuple[int, int], timer: int = 0, external: int = 0) -> Row:
    """A vCPU that others began every time, but for timers, and that waited as long as it ran."""
    wakeups = sum(count for _, count in woken_by) + timer + external
    chained = 0.0 if not woken_by and not external else run_ms * 2
    return Row(
        run_ms, ready_ms=run_ms, woken_by=woken_by, wakeups=wakeups, external=external, chain_ms=chained
    )


FAN_OUT = [
    short(4, (1, 8), (2, 8), (3, 8), timer=8),  # main: 8 requests, joined by three helpers
    short(5, (0, 8)),
    short(5, (0, 8)),
    short(5, (0, 8)),
]


ASLEEP_ROW = Row(0, wakeups=0, external=0, chain_ms=0)


def times(periods: int, rows: Sequence[Row]) -> list[Row]:
    """What they do in so many periods."""
    return [
        replace(
            row,
            consumed_ms=row.consumed_ms * periods,
            ready_ms=row.ready_ms * periods,
            woken_by=[(waker, count * periods) for waker, count in row.woken_by if periods],
            wakeups=None if row.wakeups is None else row.wakeups * periods,
            chain_ms=None if row.chain_ms is None else row.chain_ms * periods,
        )
        for row in rows
    ]


class Run:
    """A workload under the policy, with its weights as the plans leave them."""

    def __init__(self, parameters: CriticalParameters | None = None) -> None:
        self.policy: Policy = Critical(parameters or CriticalParameters())
        self.state: PolicyState = self.policy.initial_state()
        self.knobs: Mapping[VcpuId, Knobs] = {}
        self.last = Decision()

    def live(
        self, *tables: Sequence[Row], periods: int = 1, nested: bool = False, length_ms: float = 80
    ) -> list[int]:
        """The weights of the first workload after it did that for so many periods."""
        groups = [Group(f"w{number}", rows, nested=nested) for number, rows in enumerate(tables)]
        made = period(*groups, length_ms=length_ms)
        self.step(made, periods)
        return [self.weight(row) for row in range(len(tables[0]))]

    def weight(self, row: int, group: int = 0) -> int:
        weight = self.knobs[vcpu_id(group, row)].weight
        assert weight is not None
        return weight

    def latency_ms(self, row: int) -> float | None:
        """The rescheduling latency of a vCPU of the first workload."""
        latency_ns = self.knobs[vcpu_id(0, row)].rescheduling_latency_ns
        return None if latency_ns is None else latency_ns / 1e6

    def step(self, made: Period, periods: int = 1) -> None:
        """That for so many periods."""
        for _ in range(periods):
            self._step(made)

    def _step(self, made: Period) -> None:
        made = replace(made, knobs={vcpu: self.knobs.get(vcpu, knobs) for vcpu, knobs in made.knobs.items()})
        self.last = self.policy.decide(made, self.state)
        self.state = self.last.state
        planned = plan(made, self.last)
        assert planned.violations == ()
        self.knobs = after(made, planned).knobs
