"""The machine under the model: threads, groups and a cpuset as the kernel keeps them, and as without us.

Beside each value stands its `true` one: what it would be if DASEC had never run. Others write both; what
DASEC writes comes through system calls (syscalls.py) and changes the value only. A child is born with both.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

DEFAULT_SLICE_NS = 2_800_000
ALL_CPUS = (0, 1, 2)
OTHER, RT, IDLE = 0, 1, 5
NO_QUOTA = (-1, 100_000)
LABOUR = 3
"""Pauses that a birth can last: more than the restorer once made, whatever came of them."""

OURS: dict[str, frozenset[object]] = {
    "slice": frozenset({4_000_000, 6_000_000}),
    "mask": frozenset({(0,), (1,)}),
    "weight": frozenset({2000, 3000}),
    "quota": frozenset({(2500, 10_000), (5000, 10_000)}),
}
"""What the model's policy writes, and nobody else unless a scenario says so."""


class Killed(BaseException):
    """SIGKILL, between two system calls or inside one. No handler of ours may stop it."""


@dataclass
class Task:
    """One thread. A mask of None was never set, a slice of 0 neither. `was`: true values that others wrote
    over; `raced`: knobs of which either may be left, since nobody could tell (docs/safety.md, Limits)."""

    pid: int
    tid: int
    start: int
    group: str
    true_group: str
    policy: int = OTHER
    true_policy: int = OTHER
    turned: bool = False
    slice_ns: int = 0
    true_slice_ns: int = 0
    mask: tuple[int, ...] | None = None
    true_mask: tuple[int, ...] | None = None
    visible: bool = True
    labour: int = 0
    """So many more pauses of ours until its birth is over, unless it is over by itself before."""
    stranger: bool = False
    parent: int = 0
    parent_tid: int = 0
    was: dict[str, tuple[object, ...]] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()
    raced: frozenset[str] = frozenset()


@dataclass
class Group:
    """One cgroup directory. `ident` is another one if it is made again under its name."""

    ident: int
    weight: int = 1024
    true_weight: int = 1024
    ours: bool = False
    was: tuple[object, ...] = ()
    unread: bool = False
    raced: bool = False
    quota: tuple[int, int] = NO_QUOTA
    true_quota: tuple[int, int] = NO_QUOTA
    quota_was: tuple[object, ...] = ()
    quota_unread: bool = False
    quota_raced: bool = False


class Step(NamedTuple):
    """One thing that the daemon or the restorer does: what it touches ("mask 701", "threads"), whether it
    changes that, how, and in how many places a write to the journal can tear."""

    subject: str
    changes: bool = False
    how: str = ""
    tears: int = 0

    def __str__(self) -> str:
        return f"{'write' if self.changes else 'read'} {self.subject}{self.how and f': {self.how}'}"


@dataclass
class Machine:
    """Everything that outlives the daemon: the kernel's state and the journal's bytes."""

    tasks: dict[int, Task] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    cpuset: tuple[int, ...] = ALL_CPUS
    births: int = 0
    idents: int = 0
    files: dict[str, bytes] = field(default_factory=dict)
    """The state directory (memory.py)."""
    refuses: int = 0
    """So many of the next writes to threads are refused (EBUSY)."""
    unreadable: int = 0
    """So often the journal cannot be opened (EMFILE)."""

    wrong: str = ""
    steps: list[Step] = field(default_factory=list)
    interrupt: Callable[[int], None] | None = None

    # What a thread of the model goes through.

    def start(self, pid: int, tid: int, group: str = "/vm", *, stranger: bool = False) -> Task:
        """A thread from outside."""
        self.births += 1
        task = Task(pid, tid, self.now() - 1, group, group, stranger=stranger)
        self.tasks[tid] = task
        return task

    def now(self) -> int:
        """Clock ticks since boot: births happen at even ones, and whatever we do at odd ones."""
        return 2 * self.births + 1

    def conceive(self, tid: int, child: int, *, process: bool) -> None:
        """The first half of clone(2): everything is copied, and the child does not show yet."""
        had = self.tasks[tid]
        self.births += 1
        self.tasks[child] = Task(
            child if process else had.pid,
            child,
            self.now() - 1,
            had.group,
            had.true_group,
            had.policy,
            had.true_policy,
            had.turned,
            had.slice_ns,
            had.true_slice_ns,
            had.mask,
            had.true_mask,
            visible=False,
            labour=LABOUR,
            parent_tid=tid,
            stranger=had.stranger,
            parent=had.pid if process else had.parent,
            was=dict(had.was),
            raced=had.raced,
        )

    def appear(self) -> None:
        """The second half, of all births that are under way."""
        for task in self.tasks.values():
            task.visible, task.labour = True, 0

    def pause(self) -> None:
        """The machine has time for others."""
        for task in self.tasks.values():
            task.labour = max(0, task.labour - 1)
            task.visible = task.visible or not task.labour

    def gives_birth(self, tid: int) -> bool:
        """Is this thread inside of clone(2)?"""
        return any(not task.visible and task.parent_tid == tid for task in self.tasks.values())

    def make_group(self, path: str, *, ours: bool = False) -> None:
        """A new directory."""
        self.idents += 1
        self.groups[path] = Group(self.idents, ours=ours)

    # What others set. The kernel keeps it, and it is true.

    def set_slice(self, tid: int, slice_ns: int) -> None:
        """sched_setattr(2) by somebody else."""
        task = self.tasks[tid]
        self._written(task, "slice", task.true_slice_ns, slice_ns in OURS["slice"])
        task.slice_ns = task.true_slice_ns = slice_ns

    def set_mask(self, tid: int, mask: tuple[int, ...]) -> None:
        """sched_setaffinity(2) by somebody else."""
        task = self.tasks[tid]
        self._written(task, "mask", task.true_mask, mask in OURS["mask"])
        task.mask = task.true_mask = mask

    def set_weight(self, path: str, weight: int) -> None:
        """cpu.shares by somebody else."""
        group = self.groups[path]
        group.was = (*group.was, group.true_weight)
        group.raced = group.raced or weight in OURS["weight"]
        group.unread = True
        group.weight = group.true_weight = weight

    def set_quota(self, path: str, quota: tuple[int, int]) -> None:
        """cpu.cfs_quota_us and cpu.cfs_period_us by somebody else."""
        group = self.groups[path]
        group.quota_was = (*group.quota_was, group.true_quota)
        group.quota_raced = group.quota_raced or quota in OURS["quota"]
        group.quota_unread = True
        group.quota = group.true_quota = quota

    def effective(self, mask: tuple[int, ...] | None) -> tuple[int, ...]:
        """What the cpuset leaves of a mask; all of the cpuset where that is nothing."""
        left = tuple(cpu for cpu in self.cpuset if mask is None or cpu in mask)
        return left or self.cpuset

    def members(self, path: str) -> list[int]:
        """The threads in a group, also those that do not show yet."""
        return sorted(tid for tid, task in self.tasks.items() if task.group == path)

    # What we do, one system call at a time.

    def step(self, step: Step) -> None:
        """Before each of them. An interrupt may do something first, or end us."""
        self.steps.append(step)
        if self.interrupt is not None:
            self.interrupt(len(self.steps) - 1)

    def task_of(self, tid: int) -> Task:
        """Raises OSError(ESRCH)."""
        task = self.tasks.get(tid)
        if task is None or not task.visible:
            raise OSError(errno.ESRCH, "No such process")
        return task

    def read(self, tid: int, knob: str) -> Task:
        """We looked at this knob."""
        self.step(Step(f"{knob} {tid}"))
        task = self.task_of(tid)
        task.unread -= {knob}
        return task

    def write(self, tid: int, knob: str, value: object) -> Task:
        """We are about to write this knob."""
        self.step(Step(f"{knob} {tid}", True, str(value)))
        task = self.task_of(tid)
        if task.stranger:
            self.wrong = f"{knob} of thread {tid} was written, which is no thread of ours"
        if self.refuses:
            self.refuses -= 1
            raise OSError(errno.EBUSY, "Device or resource busy")
        if knob in task.unread:
            task.raced |= {knob}
        return task

    @staticmethod
    def _written(task: Task, knob: str, truth: object, like_ours: bool) -> None:
        task.was[knob] = (*task.was.get(knob, ()), truth)
        task.unread |= {knob}
        if like_ours:
            task.raced |= {knob}
