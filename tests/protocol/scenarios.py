"""The worlds that are explored."""

from __future__ import annotations

from collections.abc import Callable

from dasec.model import Knob

from .machine import ALL_CPUS, IDLE, OTHER, RT, Machine, Step
from .worlds import Event, Scenario

PROCESS, SECOND = 700, 701


def two_threads() -> Machine:
    one = Machine()
    one.make_group("/vm")
    one.start(PROCESS, PROCESS)
    one.start(PROCESS, SECOND)
    return one


def one_thread() -> Machine:
    one = Machine()
    one.make_group("/vm")
    one.start(PROCESS, PROCESS)
    return one


def vcpu_groups() -> Machine:
    """As libvirt has it: a group for each vCPU."""
    one = Machine()
    for path in ("/vm", "/vm/vcpu0", "/vm/vcpu1"):
        one.make_group(path)
    one.start(PROCESS, PROCESS, "/vm/vcpu0")
    one.start(PROCESS, SECOND, "/vm/vcpu1")
    return one


def given_quotas() -> Machine:
    """As libvirt has it with `vcpu_quota`: what the group of each vCPU may use is an owner's, too."""
    one = vcpu_groups()
    for path in ("/vm/vcpu0", "/vm/vcpu1"):
        one.groups[path].quota = one.groups[path].true_quota = (40_000, 100_000)
    return one


def conceive(parent: int, *, process: bool = False) -> Event:
    """The first half of clone(2): what is written to the parent before it is inherited."""

    def happen(one: Machine) -> bool:
        child = 710 + len([tid for tid in one.tasks if tid >= 710])
        if parent not in one.tasks or not one.tasks[parent].visible or one.gives_birth(parent):
            return False
        one.conceive(parent, child, process=process)
        return True

    return Event(happen, lambda step: step.subject == "births" or (step.changes and _of(parent, step)))


def _appear(one: Machine) -> bool:
    if all(task.visible for task in one.tasks.values()):
        return False
    one.appear()
    return True


APPEAR = Event(_appear, lambda step: step.subject.startswith(("threads", "life")))
"""The second half."""


def die(tid: int) -> Event:
    def happen(one: Machine) -> bool:
        return not one.gives_birth(tid) and one.tasks.pop(tid, None) is not None

    return Event(happen, lambda step: step.subject == "threads" or _of(tid, step))


def reuse(tid: int) -> Event:
    """The id is given out again, to somebody else's thread: at any time but between our look at the thread's
    start time and the write that follows (daemon/knobs/knob.py)."""

    def happen(one: Machine) -> bool:
        if tid in one.tasks:
            return False
        task = one.start(tid, tid, "/", stranger=True)
        task.slice_ns = task.true_slice_ns = 4_000_000
        task.mask = task.true_mask = (0,)
        return True

    return Event(happen, lambda step: step.subject in ("threads", f"life {tid}"))


def sets_slice(tid: int, slice_ns: int) -> Event:
    """Somebody else's sched_setattr(2)."""
    return Event(_if_alive(tid, lambda one: one.set_slice(tid, slice_ns)), _on(f"slice {tid}"))


def sets_mask(tid: int, mask: tuple[int, ...]) -> Event:
    """Somebody else's sched_setaffinity(2)."""
    return Event(_if_alive(tid, lambda one: one.set_mask(tid, mask)), _on(f"mask {tid}"))


def turns(tid: int, policy: int) -> Event:
    """The thread's class is another: at any time but between our look at it and the write that follows."""

    def happen(one: Machine) -> bool:
        task = one.tasks.get(tid)
        if task is None or task.true_policy == policy or task.policy != task.true_policy:
            return False  # the last: microseconds in which we have set it (docs/safety.md, Limits)
        task.policy = task.true_policy = policy
        task.turned = True
        return True

    meets = _on(f"class {tid}", f"life {tid}", f"slice {tid}")
    return Event(happen, lambda step: meets(step) and not step.changes)


def cpuset(cpus: tuple[int, ...]) -> Event:
    """The cpuset of all threads is this one."""

    def happen(one: Machine) -> bool:
        if one.cpuset == cpus:
            return False
        one.cpuset = cpus
        return True

    return Event(happen, lambda step: step.subject.startswith(("mask", "cpuset")))


def sets_weight(path: str, weight: int) -> Event:
    """Somebody else writes cpu.shares."""

    def happen(one: Machine) -> bool:
        if path not in one.groups:
            return False
        one.set_weight(path, weight)
        return True

    return Event(happen, _on(f"weight {path}"))


def sets_quota(path: str, quota: tuple[int, int]) -> Event:
    """Somebody else writes cpu.cfs_quota_us and cpu.cfs_period_us."""

    def happen(one: Machine) -> bool:
        if path not in one.groups:
            return False
        one.set_quota(path, quota)
        return True

    return Event(happen, _on(f"quota {path}"))


def made_again(path: str) -> Event:
    """An empty group is removed and made anew under its name, with values that look like ours."""

    def happen(one: Machine) -> bool:
        if path not in one.groups or one.members(path):
            return False
        del one.groups[path]
        one.make_group(path)
        one.groups[path].weight = one.groups[path].true_weight = 2000
        one.groups[path].quota = one.groups[path].true_quota = (2500, 10_000)
        return True

    return Event(happen, _on(f"weight {path}", f"quota {path}", f"inode {path}"))


def _of(tid: int, step: Step) -> bool:
    return step.subject.endswith(f" {tid}")


def _on(*subjects: str) -> Callable[[Step], bool]:
    return lambda step: step.subject in subjects


def _if_alive(tid: int, what: Callable[[Machine], None]) -> Callable[[Machine], bool]:
    def happen(one: Machine) -> bool:
        if tid not in one.tasks:
            return False
        what(one)
        return True

    return happen


def busy(one: Machine) -> bool:
    """The kernel refuses the next writes to threads: a restorer needs all of its attempts."""
    one.refuses = 2
    return True


def unreadable(one: Machine) -> bool:
    """The restorer cannot open the journal at first."""
    one.unreadable = 1
    return True


def never(step: Step) -> bool:
    return False


CORE = Scenario("core", one_thread, {}, torn=True, full=True, happenings=1, looks=2)

LIVES = Scenario("lives", one_thread, {}, happenings=0, looks=2, lives=2)

MAIN_STARTS = {"the main thread starts one": conceive(PROCESS), "births end": APPEAR}

BIRTHS = Scenario(
    "births",
    one_thread,
    MAIN_STARTS,
    kills=0,
)

FORKS = Scenario(
    "forks",
    one_thread,
    {"it forks": conceive(PROCESS, process=True), "births end": APPEAR},
    knobs=(Knob.AFFINITY,),
    looks=1,
    happenings=1,
    kills=0,
)

THIRD_PARTY = Scenario(
    "third party",
    one_thread,
    {
        "somebody sets the slice": sets_slice(PROCESS, 9_000_000),
        "somebody sets our slice": sets_slice(PROCESS, 4_000_000),
    },
)

FOREIGN_MASKS = Scenario(
    "foreign masks",
    one_thread,
    {
        "somebody sets the mask": sets_mask(PROCESS, (2,)),
        "somebody sets our mask": sets_mask(PROCESS, (0,)),
    },
)

CLASSES = Scenario(
    "classes",
    one_thread,
    {
        "it turns idle": turns(PROCESS, IDLE),
        "it turns real-time": turns(PROCESS, RT),
        "it is fair again": turns(PROCESS, OTHER),
    },
    looks=2,
    kills=0,
)

CPUSETS = Scenario(
    "cpusets",
    one_thread,
    {
        "the cpuset loses CPU 0": cpuset((1, 2)),
        "the cpuset loses CPU 1": cpuset((0, 2)),
        "the cpuset has all CPUs": cpuset(ALL_CPUS),
    },
    knobs=(Knob.AFFINITY,),
)

REUSE = Scenario(
    "reuse",
    two_threads,
    {
        "the second ends": die(SECOND),
        "its id is given out again": reuse(SECOND),
    },
    kills=0,
)

BUSY = Scenario(
    "busy",
    one_thread,
    {"the kernel refuses": Event(busy, lambda step: step.changes and step.subject != "journal")},
    looks=3,
    happenings=1,
    kills=0,
)

UNREADABLE = Scenario(
    "unreadable", one_thread, {"no descriptor is free": Event(unreadable, never)}, looks=1, kills=0
)

_CHANGE_OF_CLASS = {
    "it turns idle": turns(SECOND, IDLE),
    "it is fair again": turns(SECOND, OTHER),
}

WEIGHTS = Scenario(
    "weights",
    vcpu_groups,
    {
        "somebody sets the weight": sets_weight("/vm/vcpu1", 555),
        "the second ends": die(SECOND),
        "its group is made again": made_again("/vm/vcpu1"),
        **_CHANGE_OF_CLASS,
    },
    knobs=(Knob.WEIGHT,),
    looks=3,
    kills=0,
)

QUOTAS = Scenario(
    "quotas",
    given_quotas,
    {
        "somebody gives another quota": sets_quota("/vm/vcpu1", (60_000, 100_000)),
        "the second ends": die(SECOND),
        # Not between our look at the group's inode and the writes to its two files, which follow at once.
        "its group is made again": Event(made_again("/vm/vcpu1").happen, never),
    },
    knobs=(Knob.CAP,),
)

OWN_GROUPS = Scenario(
    "own groups",
    two_threads,
    {**MAIN_STARTS, "the second ends": die(SECOND), **_CHANGE_OF_CLASS},
    knobs=(Knob.WEIGHT,),
    own_groups=True,
    kills=0,
)

ALL = (
    CORE,
    LIVES,
    BIRTHS,
    FORKS,
    THIRD_PARTY,
    FOREIGN_MASKS,
    CLASSES,
    CPUSETS,
    REUSE,
    BUSY,
    UNREADABLE,
    WEIGHTS,
    QUOTAS,
    OWN_GROUPS,
)
