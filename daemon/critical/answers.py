"""Who is waited for below a limit, where stops hide the critical path.

A thread that wants more than its part is behind from its first second: it never sleeps, so nobody wakes it,
and no rank or chain speaks for it. It still answers. A wake-up of somebody outside the workload is an answer,
and so is one of a client that lives inside: a vCPU that wakes up about as often on its own account, by timers
or from outside, as siblings wake it. One that only siblings wake takes what it is given, as a logger does.

Only caps and loans ask (docs/decisions/0080-outward.md).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..model import VcpuId
from .memory import COUNT, Memory
from .scores import FULL, Scores

ANSWER = 2
"""Short bursts (4 ms) for each answer, at most. Threads that only compute woke others in each 10 to 30 ms of
it, below a limit on a busy host (docs/decisions/0080-outward.md); the service of the study, in 1.8."""

SEVERAL = 5
"""Remembered wake-ups: fewer are no answers. Of a thread that hardly ran one would be enough: it says that it
has begun, and all that compute beside it are capped."""

OWN_PART = 2
"""Of the wake-ups by siblings, one in so many at least is a client's own account: each request that it sends
is due to one. Behind, it is answered more rarely than it asks."""


def waited_for(memories: Sequence[Memory], verdict: Scores, burst_ns: int) -> set[VcpuId]:
    """Those with at least half of the full score. If no other than clients have that, those that answer, too;
    if there is no critical path to see, these alone, if there are any."""
    critical = [memory for memory, score in zip(memories, verdict.scores, strict=True) if score * 2 >= FULL]
    found = {memory.vcpu for memory in critical}
    if not verdict.silent and not all(map(_is_client, critical)):
        return found
    answered = {memory.vcpu: memory.outward for memory in memories}
    for client in filter(_is_client, memories):
        for waker, count in client.wakers:
            answered[waker] = answered.get(waker, 0) + count
    answering = {
        memory.vcpu for memory in memories if _answers(memory.run_ns, answered[memory.vcpu], burst_ns)
    }
    return (answering or found) if verdict.silent else answering | found


def _is_client(memory: Memory) -> bool:
    """Do siblings wake it, and its own account as often?"""
    taken = sum([count for _, count in memory.wakers])
    return 0 < taken <= (memory.bursts - taken) * OWN_PART


def _answers(run_ns: int, answered: int, burst_ns: int) -> bool:
    """Is there an answer at least in every ANSWER bursts' worth of computing?"""
    return answered >= SEVERAL * COUNT and run_ns * COUNT <= answered * burst_ns * ANSWER
