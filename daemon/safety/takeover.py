"""A number that another thread of the same process took over, by execve.

execve by a thread that is not the main one ends all others and gives the caller the main thread's number
*and* its start time (de_thread() in fs/exec.c). Its own slice, mask and group stay: what we held of it is
now to be found behind the main thread's number, and what we held of the main thread has ended with that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..model import VcpuId
from .fate import Fate, KnobFate, judge
from .journal.ledger import Outstanding
from .kernel import Kernel


def overtaken(
    verdicts: Sequence[KnobFate], knobs: Sequence[Outstanding], kernel: Kernel
) -> Iterator[KnobFate]:
    """The verdicts, with what such a thread has brought along put back.

    It shows by a value that is not ours in the main thread's knob, and was ours in that of a thread which has
    vanished. Where both had the same value of ours nothing tells them apart: the main thread's prior returns.
    """
    vanished = {one.ref for one in verdicts if one.fate is Fate.VANISHED}
    for verdict in verdicts:
        ref = verdict.ref
        main = ref.owner
        if verdict.fate is not Fate.LEFT_ALONE or not isinstance(main, VcpuId) or main.pid != main.tid:
            yield verdict
            continue
        brought = (
            one._replace(ref=ref)
            for one in knobs
            if one.ref in vanished and one.ref.kind is ref.kind and one.ref.vcpu.pid == main.pid
        )
        again = (judge(one, kernel) for one in brought)
        yield next((one for one in again if one.fate is not Fate.LEFT_ALONE), verdict)
