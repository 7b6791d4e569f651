"""What must hold: at every state, and when nobody of ours runs any more."""

from __future__ import annotations

from collections.abc import Iterator

from dasec.knobs.knob import KnobRef, NativeKnob
from dasec.knobs.masks import AFFINITY
from dasec.knobs.quotas import QUOTA
from dasec.knobs.slices import SLICE
from dasec.model import VcpuId
from dasec.safety.journal.ledger import Ledger

from .explore import Wrong
from .files import CG
from .machine import ALL_CPUS, OURS, Machine, Task


def at_every_state(one: Machine, ledger: Ledger) -> None:
    """The kernel holds what would be without us, or a value that the journal's file names as ours; and no
    prior value in it is one of ours."""
    for task in one.tasks.values():
        for knob, kind, value, truths in _knobs(task):
            if value in truths or not task.visible:
                continue
            if not _known(ledger, task, kind, value):
                raise Wrong(f"{knob} of thread {task.tid} is {value}, and the journal does not know it")
    for ref, holding in ledger.held.items():
        truths = _prior_may_be(one, ref)
        knob = {SLICE: "slice", AFFINITY: "mask", QUOTA: "quota"}.get(ref.kind, "weight")
        if _plain(holding.prior) in OURS[knob] and _plain(holding.prior) not in truths:
            raise Wrong(f"{knob} of {ref.owner} has our value {holding.prior} as its prior one")


def at_rest(one: Machine, ledger: Ledger) -> None:
    """Everything is as it would be without us. Only a slice that the kernel let nobody write may be
    left, if the journal still holds it."""
    for task in one.tasks.values():
        who = VcpuId(task.pid, task.tid, task.start)
        for knob, kind, value, truths in _knobs(task):
            waits = task.turned and kind is SLICE and KnobRef(who, kind) in ledger.held
            if value not in truths and not waits:
                raise Wrong(f"{knob} of thread {task.tid} stays {value}, should be {truths[0]}")
        if task.policy != task.true_policy:
            raise Wrong(f"class of thread {task.tid} stays {task.policy}, should be {task.true_policy}")
        if task.group != task.true_group:
            raise Wrong(f"thread {task.tid} stays in {task.group}")
    for path, group in one.groups.items():
        if group.ours and all(task.true_group != path for task in one.tasks.values()):
            raise Wrong(f"{path} is left over")
        truths = (group.true_weight, *(group.was if group.raced else ()))
        if not group.ours and group.weight not in truths:
            raise Wrong(f"weight of {path} stays {group.weight}, should be {group.true_weight}")
        quotas = (group.true_quota, *(group.quota_was if group.quota_raced else ()))
        if not group.ours and group.quota not in quotas:
            raise Wrong(f"quota of {path} stays {group.quota}, should be {group.true_quota}")


def _knobs(task: Task) -> Iterator[tuple[str, NativeKnob, object, tuple[object, ...]]]:
    raced = task.raced
    slices = (task.true_slice_ns, *(task.was.get("slice", ()) if "slice" in raced else ()))
    yield "slice", SLICE, task.slice_ns, slices
    masks = (task.true_mask, *(task.was.get("mask", ()) if "mask" in raced else ()))
    yield "mask", AFFINITY, _full_is_none(task.mask), tuple(map(_full_is_none, masks))


def _full_is_none(mask: object) -> object:
    """A mask that was never set cannot be told from a full one (docs/safety.md, Limits)."""
    return None if mask == ALL_CPUS else mask


def _known(ledger: Ledger, task: Task, kind: NativeKnob, value: object) -> bool:
    holding = ledger.held.get(KnobRef(VcpuId(task.pid, task.tid, task.start), kind))
    if holding is not None and (value in holding.ours or value == holding.prior):
        return True
    family = (task.pid, task.parent)
    return any(one.pid in family and one.kind is kind and one.value == value for one in ledger.bequests())


def _plain(value: object) -> object:
    """A quota as the machine has it."""
    if not isinstance(value, str) or " " not in value:
        return value
    quota, period = value.split(" ")
    return (-1 if quota == "max" else int(quota)), int(period)


def _prior_may_be(one: Machine, ref: KnobRef) -> tuple[object, ...]:
    if ref.kind.of_group:
        group = one.groups.get(ref.group.directory.removeprefix(CG))
        if group is None:
            return ()
        if ref.kind is QUOTA:
            return (group.true_quota, *group.quota_was)
        return (group.true_weight, *group.was)
    task = one.tasks.get(ref.vcpu.tid)
    if task is None or task.start != ref.vcpu.start_ticks:
        return tuple(OURS["slice"] | OURS["mask"])
    return next((truths for _, kind, _, truths in _knobs(task) if kind is ref.kind), ())
