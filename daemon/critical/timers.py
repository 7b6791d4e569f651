"""Where only timers wake those that serve, short bursts suffice.

A service that asks itself, as a load generator within it does or one that polls, sleeps until it is time.
Nobody is seen to wait for it then, so no rank or chain speaks for it; what tells it from background is that
it is done soon. Where siblings or somebody outside wake those that score, that says more, and bursts alone
would mistake long critical ones for background (docs/decisions/0113-timers.md).
"""

from __future__ import annotations

from collections.abc import Sequence

from .memory import SEASONED, Counting, Memory
from .scores import FULL, SILENT, Scores, short

SEEN_DIVISOR = 8
"""Of the wake-ups of those that score, one in so many at least is by siblings or from outside where it can be
seen who waits for whom. TailBench's masstree has one in twenty, by its locks
(docs/decisions/0113-timers.md)."""

ALIKE = 4
"""Bursts up to twice as long as the shortest count alike (`short` is a square): threads that all serve
shall not be told apart by chance, and background computes for several times as long."""


def with_timers(memories: Sequence[Memory], verdict: Scores) -> Scores:
    """The verdict where it can be seen who waits for whom, or where nobody has short bursts. Else FULL for
    the shortest bursts, and for others at least what theirs are worth."""
    if verdict.level is Counting.NONE or not _only_timers_wake(memories, verdict.scores):
        return verdict
    brief = [short(memory) for memory in memories]
    judged = [each for each, memory in zip(brief, memories, strict=True) if memory.periods >= SEASONED]
    top = max(judged, default=0)
    if top < SILENT:
        return verdict
    known = [0] * len(memories) if verdict.silent else verdict.scores
    scores = [
        FULL if each * ALIKE >= top else max(score, each) for each, score in zip(brief, known, strict=True)
    ]
    return verdict._replace(scores=scores)


def _only_timers_wake(memories: Sequence[Memory], scores: Sequence[int]) -> bool:
    """Hardly anybody of those that score is woken by siblings or from outside."""
    seen = list(zip(memories, scores, strict=True))
    led = sum([memory.led * score for memory, score in seen])
    return led * SEEN_DIVISOR < sum([memory.bursts * score for memory, score in seen])
