"""Put back threads that were born with a value of ours and that nobody ever held.

Such a thread came between the daemon's last look and its end, or its workload opted in
with some of its threads only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..linux.errors import ThreadGone
from ..linux.knob import KnobRef, NativeKnob, NativeValue
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
    for vcpu, pid in kernel.family(frozenset(pid for pid, _, _ in wanted)):
        for kind in kinds:
            ref = KnobRef(vcpu, kind)
            if ref in held:
                continue
            try:
                bequest = wanted.get((pid, kind, kernel.read(ref)))
            except (ThreadGone, OSError):
                continue
            if bequest is not None and vcpu.start_ticks >= bequest.since_ticks:
                yield Outstanding(ref, bequest.prior, (bequest.value,))
