"""A full trace of the scheduler, and what a monitor must have counted according to it.

The recorder (bpf/sched_trace.bpf.c) writes down tracepoints and nothing else; states, classes and blame are
worked out here, another way than the monitor does: from complete histories, after the fact.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from dasec.bpf import libbpf

RECORDS = 1 << 20
_RECORD = struct.Struct("<QHHiiI")
WAKING, SWITCH, ENTER, LEAVE = range(4)
LOCAL_TIMER, SOFTIRQ = 1, 3
_INTERRUPTS = ("local_timer", "irq_handler", "softirq", "call_function", "call_function_single", "irq_work")


class Event(NamedTuple):
    ns: int
    kind: int
    core: int
    running: int
    other: int
    sleeps: int


class Recorder:
    """Records from when it is made."""

    def __init__(self) -> None:
        folder = Path(__file__).parent / "bpf"
        self._object = libbpf.load("sched_trace", sizes={"records": RECORDS}, folder=folder)
        for name in _INTERRUPTS:
            self._object.attach(f"{name}_leave")
            self._object.attach(f"{name}_enter")
        for name in ("waking", "switches"):
            self._object.attach(name)
        self._records = memoryview(self._object.view("records", RECORDS * _RECORD.size))
        self._written = memoryview(self._object.view("written", 8)).cast("Q")

    def events(self) -> list[Event]:
        """All events until now, in order."""
        count = self._written[0]
        assert count < RECORDS, "the test ran too long for its recorder"
        rows = _RECORD.iter_unpack(self._records[: count * _RECORD.size])
        return [Event(*row) for row in rows if row[0]]

    def close(self) -> None:
        """Stop."""
        self._records.release()
        self._written.release()
        self._object.close()


@dataclass
class Truth:
    """What happened to the threads of one workload from `since_ns` on."""

    since_ns: int = 0
    sibling: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    external: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    timer: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    outward: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    edges: dict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))
    blame_ns: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    run_ns: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    ready_ns: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    sleep_ns: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    preemptions: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    missed: int = 0


class Spell(NamedTuple):
    """A stretch of time in one state."""

    from_ns: int
    to_ns: int


class History:
    """The states of one thread, from its own events."""

    def __init__(self) -> None:
        self.state = ""
        self.since_ns = 0
        self.woken_early = False
        self.ready: list[Spell] = []

    def enter(self, state: str, ns: int, not_before_ns: int) -> Spell:
        """Into a new state; the stretch that ended, as far as it counts."""
        spell = Spell(max(self.since_ns, not_before_ns), ns)
        if self.state == "ready" and state == "running":  # else it got a core unseen
            self.ready.append(spell)
        self.state, self.since_ns = state, ns
        return spell


def evaluate(events: Iterable[Event], tids: Set[int], since_ns: int = 0) -> Truth:
    """What the threads `tids`, all siblings of each other, did from then on."""
    truth, before = Truth(since_ns), Truth()
    histories = {tid: History() for tid in tids}
    context: dict[int, list[int]] = defaultdict(list)
    for event in events:
        counting = truth if event.ns >= since_ns else before
        if event.kind == ENTER:
            context[event.core].append(event.other)
        elif event.kind == LEAVE:
            if event.other in context[event.core]:
                context[event.core].remove(event.other)
        elif event.kind == SWITCH:
            _switch(counting, histories, event)
        elif event.other in tids:
            _wake(counting, histories, event, context[event.core])
        elif event.running in tids and not context[event.core]:
            counting.outward[event.running] += 1
    return truth


def _switch(truth: Truth, histories: dict[int, History], event: Event) -> None:
    leaves, comes = histories.get(event.running), histories.get(event.other)
    if leaves is not None:
        was = leaves.state
        spell = leaves.enter("asleep" if event.sleeps else "ready", event.ns, truth.since_ns)
        if was == "running":
            truth.run_ns[event.running] += spell.to_ns - spell.from_ns
        elif was:
            truth.missed += 1
        truth.preemptions[event.running] += not event.sleeps
    if comes is not None:
        if comes.state == "asleep" and comes.woken_early:  # it never slept: it was ready all the time
            comes.state = "ready"
        was = comes.state
        spell = comes.enter("running", event.ns, truth.since_ns)
        comes.woken_early = False
        if was == "ready":
            truth.ready_ns[event.other] += spell.to_ns - spell.from_ns
        elif was == "asleep":
            truth.sleep_ns[event.other] += spell.to_ns - spell.from_ns
            truth.missed += 1


def _wake(truth: Truth, histories: dict[int, History], event: Event, context: list[int]) -> None:
    wakee = histories[event.other]
    slept = wakee.enter("ready", event.ns, truth.since_ns) if wakee.state == "asleep" else None
    if slept is None:
        wakee.woken_early = True
    else:
        truth.sleep_ns[event.other] += slept.to_ns - slept.from_ns
    if LOCAL_TIMER in context:
        truth.timer[event.other] += 1
    elif context or event.running not in histories or event.running == event.other:
        truth.external[event.other] += 1
    else:
        truth.sibling[event.other] += 1
        truth.edges[event.running, event.other] += 1
        if slept is not None:
            spells = histories[event.running].ready
            truth.blame_ns[event.running] += sum(_overlap(spell, slept) for spell in spells)


def _overlap(one: Spell, other: Spell) -> int:
    return max(0, min(one.to_ns, other.to_ns) - max(one.from_ns, other.from_ns))
