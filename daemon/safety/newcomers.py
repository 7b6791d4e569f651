"""Put back threads that were born with a value of ours and that nobody ever held.

Such a thread came between the daemon's last look and its end, or its workload opted in
with some of its threads only. It may have children itself, so whoever is found is a parent
like those that were held: all are found when a search that began after the last birth of
any of them had ended (births.py) finds nobody, twice in succession.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from ..knobs.knob import KnobRef, NativeKnob, NativeValue
from ..linux.errors import ThreadGone
from ..model import VcpuId
from .births import Births
from .fate import Fate, KnobFate, is_in_force, judge
from .journal.codec import Bequest
from .journal.ledger import ANY_PROCESS, Outstanding
from .kernel import Kernel

_CLEAN_SWEEPS = 2
"""One reads the tasks one after the other: somebody may have a child behind its back, and end before it."""

_SWEEPS = 1000
"""Each meets at least one more generation, as long as there is time."""

_Wanted = Mapping[tuple[int, NativeKnob], Sequence[Bequest]]
_Heir = tuple[Outstanding, int]
"""Whom to put back, and of which of our processes."""


def disinherit(held: Sequence[KnobFate], bequests: Sequence[Bequest], kernel: Kernel) -> list[KnobFate]:
    """What became of these knobs, which are held, and of those of heirs.

    Sweeps the processes of which at least one thread is known to be the one that we held (the process id
    cannot have been given out again), and their descendants. Where somebody may still be giving birth, the
    knobs that we hold of that process count as not put back: of that one, whatever the others were at.
    """
    living = frozenset(pid for one in held if (pid := _living_process(one, kernel)) is not None)
    wanted = _by_process([one for one in bequests if one.pid in living])
    if not wanted:
        return list(held)
    births = Births(kernel)
    kinds = {kind for _, kind in wanted}
    births.expect({one.ref.vcpu for one in held if one.ref.kind in kinds and one.fate is not Fate.VANISHED})
    seen = {one.ref for one in held}
    process_of: dict[VcpuId, int] = {}
    verdicts: list[KnobFate] = []
    clean = dict.fromkeys(living, 0)
    late = 0
    for _ in range(_SWEEPS):
        if late == _CLEAN_SWEEPS or min(clean.values()) >= _CLEAN_SWEEPS:
            break
        late += not births.await_end() or births.is_late()
        unfinished = {process_of.get(who, who.pid) for who in births.pending()}
        found = list(_heirs(seen, wanted, kernel))
        verdicts += [judge(heir, kernel) for heir, _ in found]
        seen.update(heir.ref for heir, _ in found)
        process_of.update({heir.ref.vcpu: pid for heir, pid in found})
        births.expect({heir.ref.vcpu for heir, _ in found})
        unfinished.update(pid for _, pid in found)
        clean = {pid: 0 if pid in unfinished else times + 1 for pid, times in clean.items()}
    unproven = {pid for pid, times in clean.items() if times < _CLEAN_SWEEPS}
    return [
        *(
            _unproven(one) if (pid := _process(one)) in unproven and (pid, one.ref.kind) in wanted else one
            for one in held
        ),
        *verdicts,
    ]


def _process(one: KnobFate) -> int:
    return ANY_PROCESS if one.ref.sake is None else one.ref.sake.pid


def _living_process(one: KnobFate, kernel: Kernel) -> int | None:
    """Its process, if the thread is known to be the one that we held. A group outlives it."""
    if one.fate is Fate.VANISHED or one.ref.sake is None:
        return None
    if one.ref.kind.of_group:
        try:
            kernel.progress(one.ref.sake)
        except (ThreadGone, OSError):
            return None
    return one.ref.sake.pid


def _unproven(one: KnobFate) -> KnobFate:
    if one.fate in (Fate.VANISHED, Fate.WAITING):
        return one
    detail = f"{one.ref}: may have been passed on to a thread that is still being born"
    return KnobFate(
        one.ref, Fate.FAILED, f"{detail}: the machine has no time for it; run `dasec restore` then"
    )


def _by_process(bequests: Sequence[Bequest]) -> _Wanted:
    """By process and kind."""

    wanted: dict[tuple[int, NativeKnob], list[Bequest]] = {}
    for one in bequests:
        wanted.setdefault((one.pid, one.kind), []).append(one)
    return wanted


def _heirs(seen: Collection[KnobRef], wanted: _Wanted, kernel: Kernel) -> Iterator[_Heir]:
    kinds = sorted({kind for _, kind in wanted}, key=str)
    family = tuple(kernel.family(frozenset(pid for pid, _ in wanted)))
    mains = {vcpu.pid: vcpu for vcpu, line in family if vcpu.tid == vcpu.pid == line[0]}
    for vcpu, line in family:
        for kind in kinds:
            ref = KnobRef(vcpu, kind)
            if ref not in seen and (heir := _heir(ref, line, wanted, mains, kernel)) is not None:
                yield heir


def _heir(
    ref: KnobRef, line: Sequence[int], wanted: _Wanted, mains: Mapping[int, VcpuId], kernel: Kernel
) -> _Heir | None:
    try:
        value = kernel.read(ref)
        for pid in line:
            for bequest in wanted.get((pid, ref.kind), ()):
                if (
                    ref.vcpu.start_ticks >= bequest.since_ticks
                    and is_in_force(ref, bequest.value, value, kernel)
                    and not _own(ref, value, bequest, mains.get(pid), kernel)
                ):
                    return Outstanding(ref, bequest.prior, (bequest.value,)), pid
    except (ThreadGone, OSError):
        pass
    return None


def _own(ref: KnobRef, value: NativeValue, bequest: Bequest, main: VcpuId | None, kernel: Kernel) -> bool:
    """Has the main thread this value, now that it has its own back? Then the newcomer may have it from
    there, and nobody can tell that it has it from a sibling of which it was ours. But where a mask is cut
    so that ours and the prior read the same, the prior does no harm."""
    if value != bequest.value and value == kernel.in_force(ref, bequest.prior):
        return False
    try:
        return main is not None and kernel.read(KnobRef(main, bequest.kind)) == value
    except (ThreadGone, OSError):
        return False
