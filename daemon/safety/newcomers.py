"""Put back threads that were born with a value of ours and that nobody ever held.

Such a thread came between the daemon's last look and its end, or its workload opted in
with some of its threads only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..linux.errors import ThreadGone
from ..linux.knob import KnobRef, NativeKnob, NativeValue
from ..model import VcpuId
from .codec import Bequest
from .kernel import Kernel
from .knobs import Verdict, judge
from .ledger import ANY_PROCESS, Outstanding

_SWEEPS = 6
"""A thread may have started another before it was put back: each sweep meets one more generation."""

_PAUSES_S = (0.02, 0.1)
"""clone(2) copies slice and mask before the child shows in /proc. A birth that was under way while its
parent was put back is over after this long, unless the machine holds the parent up for longer."""

_Key = tuple[int, NativeKnob, NativeValue]


def disinherit(
    held: frozenset[KnobRef], bequests: Sequence[Bequest], living: frozenset[int], kernel: Kernel
) -> list[Verdict]:
    """Sweep the processes of which at least one thread is known to be the one that we held
    (`living`: the process id cannot have been given out again), and their descendants."""
    wanted: dict[_Key, Bequest] = {
        (one.pid, one.kind, one.value): one for one in bequests if one.pid in living - {ANY_PROCESS}
    }
    if not wanted:
        return []
    verdicts = _sweep(held, wanted, kernel)
    for pause_s in _PAUSES_S:
        kernel.let_births_end(pause_s)
        verdicts += _sweep(held, wanted, kernel)
    return verdicts


def _sweep(held: frozenset[KnobRef], wanted: dict[_Key, Bequest], kernel: Kernel) -> list[Verdict]:
    """Until nobody is found any more."""
    verdicts: list[Verdict] = []
    for _ in range(_SWEEPS):
        found = [judge(heir, kernel) for heir in _heirs(held, wanted, kernel)]
        verdicts += found
        if not found:
            break
    return verdicts


def _heirs(held: frozenset[KnobRef], wanted: dict[_Key, Bequest], kernel: Kernel) -> Iterator[Outstanding]:
    kinds = sorted({kind for _, kind, _ in wanted})
    family = tuple(kernel.family(frozenset(pid for pid, _, _ in wanted)))
    mains = {vcpu.pid: vcpu for vcpu, line in family if vcpu.tid == vcpu.pid == line[0]}
    for vcpu, line in family:
        for kind in kinds:
            ref = KnobRef(vcpu, kind)
            if ref in held:
                continue
            try:
                value = kernel.read(ref)
            except (ThreadGone, OSError):
                continue
            for pid in line:
                bequest = wanted.get((pid, kind, value))
                if bequest is None or vcpu.start_ticks < bequest.since_ticks:
                    continue
                if not _own(bequest, mains.get(pid), kernel):
                    yield Outstanding(ref, bequest.prior, (bequest.value,))
                    break


def _own(bequest: Bequest, main: VcpuId | None, kernel: Kernel) -> bool:
    """Has the main thread this value, now that it has its own back? Then the newcomer may have it from
    there, and nobody can tell that it has it from a sibling of which it was ours."""
    try:
        return main is not None and kernel.read(KnobRef(main, bequest.kind)) == bequest.value
    except (ThreadGone, OSError):
        return False
