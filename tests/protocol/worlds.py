"""One world: the machine, the daemon with its real host and journal, and all that may happen next.

A daemon's look, an orderly stop and a restorer are long: they are run once without a disturbance, and then
once for each system call in them with a disturbance there: SIGKILL, a torn append, a full file system, a
third party's write, half a birth, a death. `Scenario.disturbances` says how many of them one action has.
"""

from __future__ import annotations

import errno
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest

from dasec.hosts.host import HostSettings
from dasec.hosts.threads.adopt import Adoption
from dasec.hosts.threads.host import RETRY_PERIODS, ThreadsHost
from dasec.hosts.threads.interface import Adopts
from dasec.hosts.threads.looks import LookedAt, Looks
from dasec.hosts.threads.thread import ManagedThread, why_not
from dasec.knobs.knob import Write
from dasec.model import (
    NO_LIMITS,
    Capabilities,
    Change,
    Counters,
    Knob,
    Knobs,
    KnobValue,
    Restored,
    Snapshot,
    VcpuId,
)
from dasec.roster import RosterEntry
from dasec.safety import keeping
from dasec.safety.journal.directory import Notice
from dasec.safety.journal.journal import NAME, Journal
from dasec.safety.journal.ledger import Ledger
from dasec.safety.kernel import LinuxKernel
from dasec.safety.restore import put_all_back

from .explore import Wrong
from .files import Descriptors, machine, on
from .invariants import at_every_state, at_rest
from .machine import ALL_CPUS, OTHER, Killed, Machine, Step
from .memory import Full, Torn, known, open_journal, shorten


class Event(NamedTuple):
    """Something that others do. `happen` says False where it cannot now. `meets`: the steps of ours which
    find another world after it than before it. Before any other step it is the same as after that."""

    happen: Callable[[Machine], bool]
    meets: Callable[[Step], bool]


@dataclass(frozen=True)
class Scenario:
    """What there is at first, what may happen, and how often."""

    name: str
    machine: Callable[[], Machine]
    events: dict[str, Event]
    knobs: tuple[Knob, ...] = (Knob.AFFINITY, Knob.RESCHEDULING_LATENCY)
    own_groups: bool = False
    looks: int = 2
    happenings: int = 2
    disturbances: int = 1
    kills: int = 1
    """How often a restorer can be killed."""
    lives: int = 1
    torn: bool = False
    full: bool = False


SCENARIOS: dict[str, Scenario] = {}
"""By name: a frozen world holds the name only."""


@dataclass
class Left:
    """How often things may still happen."""

    looks: int
    happenings: int
    kills: int
    lives: int


@dataclass
class World:
    """A state."""

    scenario: str
    machine: Machine
    left: Left
    descriptors: Descriptors = field(default_factory=Descriptors)
    host: ThreadsHost | None = None
    journal: Journal | None = None
    over: bool = False

    @classmethod
    def of(cls, scenario: Scenario) -> World:
        """Before the daemon's first start."""
        SCENARIOS[scenario.name] = scenario
        left = Left(scenario.looks, scenario.happenings, scenario.kills, scenario.lives)
        return cls(scenario.name, scenario.machine(), left)

    @property
    def law(self) -> Scenario:
        """The scenario."""
        return SCENARIOS[self.scenario]

    def actions(self) -> tuple[str, ...]:
        """See Explorable."""
        if self.over:
            return ("start",) if self.left.lives and self.left.looks else ()
        own: tuple[str, ...] = ()
        if self.host is not None:
            own = ("look", "stop", "kill") if self.left.looks else ("stop", "kill")
        elif self._file():
            own = ("restore", "start") if self.left.lives and self.left.looks else ("restore",)
        else:
            own = ("start",)
        return (*own, *(self.law.events if self.left.happenings else ()))

    def act(self, action: str, freeze: bytes) -> Iterator[tuple[str, World]]:
        """See Explorable."""
        waiting: list[tuple[tuple[int, str], ...]] = [()]
        while waiting:
            disturbances = waiting.pop()
            world: World = pickle.loads(freeze)
            if not world.go(action, disturbances):
                continue
            steps = world.machine.steps
            world.tidy()
            said = "".join(f"; {what} at {_short(str(steps[at]))}" for at, what in disturbances)
            yield f"{action}{said}", world
            if len(disturbances) == self.law.disturbances or any(what == "KILL" for _, what in disturbances):
                continue
            first = disturbances[-1][0] + 1 if disturbances else 0
            for at in range(first, len(steps)):
                for what in self._may_disturb(action, steps[at]):
                    waiting.append((*disturbances, (at, what)))

    def _may_disturb(self, action: str, step: Step) -> Iterator[str]:
        if " with class" in step.how:
            return  # microseconds in which a thread that has turned idle is not (docs/safety.md, Limits)
        if step.changes and (action in ("look", "stop") or self.left.kills):
            yield "KILL"
            if self.law.torn:
                yield from (f"TORN {place}" for place in range(step.tears))
        if step.tears and self.law.full and self.left.happenings:
            yield from ("FULL", "FULL at half")
        if self.left.happenings:
            yield from (name for name, event in self.law.events.items() if event.meets(step))

    def go(self, action: str, disturbances: tuple[tuple[int, str], ...]) -> bool:
        """Do it; False: it cannot happen like this."""
        self.machine.steps = []
        pending = dict(disturbances)
        possible = True

        def interrupt(at: int) -> None:
            nonlocal possible
            what = pending.pop(at, None)
            if what is None:
                return
            if what == "KILL":
                raise Killed
            if what.startswith("TORN"):
                raise Torn(int(what.split()[1]))
            self.left.happenings -= 1
            if what.startswith("FULL"):
                raise Full(half=what == "FULL at half")
            possible &= self.law.events[what].happen(self.machine)

        self.machine.interrupt = interrupt
        with on(self.machine, self.descriptors):
            try:
                if action in self.law.events:
                    self.left.happenings -= 1
                    possible = self.law.events[action].happen(self.machine)
                else:
                    getattr(self, f"_{action}")()
            except Killed:
                if action in ("restore", "start"):
                    self.left.kills -= 1
                self._die()
        self.machine.interrupt = None
        return possible and not pending

    def _file(self) -> bytes:
        return self.machine.files.get(NAME, b"")

    def check(self) -> None:
        """See Explorable."""
        if self.machine.wrong:
            raise Wrong(self.machine.wrong)
        at_every_state(self.machine, known(self._file()))
        if self.over:
            self._at_rest()

    def tidy(self) -> None:
        """The journal says the same in its shortest form, so that states with one meaning are one state."""
        ledger = known(self._file())
        if self.journal is not None and self.journal._fd >= 0:  # else the next entry writes it anew
            in_memory = self.journal._ledger
            if list(in_memory.entries(0)) != list(ledger.entries(0)):
                raise Wrong("the file of the journal says something else than the daemon's memory")
        shorten(self.machine, self.journal)
        if self.host is not None:
            self.host._turn = 0
        self.machine.steps = []

    # Actions.

    def _start(self) -> None:
        """service/run.py, _guarded: what a dead daemon left is put back first."""
        self.over = False
        self.left.lives -= 1
        self.journal = open_journal()
        put_all_back(self.journal, LinuxKernel())
        capabilities = Capabilities("mainline", True, "", True, "", True, "", False, "", cap=True)
        settings = HostSettings(own_groups=self.law.own_groups, caps=Knob.CAP in self.law.knobs)
        self.host = ThreadsHost(self.journal, capabilities, AllSeeing(), settings)

    def _look(self) -> None:
        """loop.py: observe, decide, apply."""
        assert self.host is not None
        self.left.looks -= 1
        self.host._turn = RETRY_PERIODS - 1  # whoever was left alone is asked again at each look
        snapshot = self.host.observe(roster())
        self.host.apply(tuple(wishes(snapshot, self.law.knobs)))
        self.host.notices()

    def _stop(self) -> None:
        """service/run.py: restore, and only if nothing failed dismiss the keeper and close."""
        assert self.host is not None
        restored = self.host.restore()
        if not restored.failed:
            self.host.close()
            self.over = True
        self._die()

    def _kill(self) -> None:
        self._die()

    def _restore(self) -> None:
        """The keeper, or `dasec restore`, to its end (keeping.py, _put_back)."""

        def recover(directory: Path, wait_s: float, at: int | None) -> tuple[Restored, tuple[Notice, ...]]:
            if self.machine.unreadable:
                self.machine.unreadable -= 1
                raise OSError(errno.EMFILE, "Too many open files")
            return put_all_back(open_journal(), LinuxKernel()), ()

        with pytest.MonkeyPatch.context() as patches:
            patches.setattr(keeping, "recover", recover)
            keeping._put_back(Path("/run/dasec"), None)
        self.over = True

    def _die(self) -> None:
        self.host = self.journal = None
        self.descriptors.open.clear()
        if not self.left.lives:
            self.left.looks = 0  # there will be none

    def _at_rest(self) -> None:
        """Nobody of ours runs any more. What is not back is held, and is put back once it can be."""
        world: World = pickle.loads(pickle.dumps(self))
        at_rest(world.machine, known(world._file()))
        heal(world.machine)
        if known(world._file()).held:
            with on(world.machine, world.descriptors):
                world._restore()
        at_rest(world.machine, Ledger())


def heal(one: Machine) -> None:
    """Births end, threads are fair again, the cpuset has all its CPUs, and nothing is busy."""
    one.appear()
    one.refuses = 0
    one.cpuset = ALL_CPUS
    for task in one.tasks.values():
        task.policy = task.true_policy = OTHER


def roster() -> tuple[RosterEntry, ...]:
    """The threads that were configured: all that are no stranger's."""
    seen = [one for one in machine().tasks.values() if one.visible and not one.stranger]
    return (RosterEntry("vm", None, tuple((one.pid, one.tid) for one in seen)),)


def wishes(snapshot: Snapshot, knobs: tuple[Knob, ...]) -> Iterator[Change]:
    """A policy that changes every knob at every look."""
    for workload in snapshot.workloads:
        for vcpu in workload.vcpus:
            present: Knobs = snapshot.knobs[vcpu.id]
            allowed = sorted(vcpu.allowed)[:2]
            choices: dict[Knob, tuple[KnobValue | None, Sequence[KnobValue]]] = {
                Knob.WEIGHT: (present.weight, (2000, 3000)),
                Knob.RESCHEDULING_LATENCY: (present.rescheduling_latency_ns, (4_000_000, 6_000_000)),
                Knob.AFFINITY: (present.affinity, [frozenset({core}) for core in allowed]),
                Knob.CAP: (_cap(snapshot, workload.name, vcpu.id), (250_000, 500_000)),
            }
            for knob in knobs:
                now, both = choices[knob]
                new = next((one for one in both if one != now), None)
                if now is not None and new is not None:
                    yield Change(vcpu.id, knob, now, new, "other")


def _cap(snapshot: Snapshot, workload: str, vcpu: VcpuId) -> int | None:
    """What we have on its group; None: it cannot be capped."""
    own = snapshot.limits.get(workload, NO_LIMITS).own.get(vcpu)
    return None if own is None else own.present_ppm


class AllSeeing:
    """KernelInterface that see everything at each look, as BPF does on a busy host."""

    def adoption(self, stock: Adoption) -> Adopts:
        """See KernelInterface."""
        return stock

    def sampler(self, threads: Sequence[ManagedThread], counters: dict[VcpuId, Counters]) -> Looks:
        """See KernelInterface."""
        return AllSeen(tuple(threads))

    def write_together(self, writes: Sequence[Write]) -> tuple[Write, ...]:
        """See KernelInterface."""
        return ()

    def notices(self) -> tuple[str, ...]:
        """See KernelInterface."""
        return ()

    def close(self) -> None:
        """See KernelInterface."""


@dataclass
class AllSeen:
    """Looks (batch.py): who has ended, who is not fair any more, and everybody's knobs."""

    threads: tuple[ManagedThread, ...]

    def take(self, clock_ns: int) -> LookedAt:
        """See Looks."""
        sample = LookedAt([], [], [], [])
        suspects, closely = [], []
        for thread in self.threads:
            task = machine().tasks.get(thread.id.tid)
            if task is None or task.start != thread.id.start_ticks:
                sample.gone.append(thread)
            elif task.policy:
                sample.turned.append((thread, why_not(task.policy, kernel_thread=False) or ""))
            else:
                suspects.append(thread)
                if not thread.written:
                    closely.append(thread)
                thread.written = False
        return sample._replace(suspects=suspects, closely=closely)


def _short(name: str) -> str:
    return name if len(name) < 60 else f"{name[:57]}..."
