"""How critical a vCPU is, from 0 to 1 in thousandths.

score = max(rank, chain × short)

- **rank** is what siblings wait for (`rank.py`), for vCPUs that wake a sibling at least once in every
  LONGEST bursts' worth of computing; less in proportion for others. Whoever stopped waking anybody, and
  computes, loses the rank of the past.
- **chain** is the part of the time, running or ready, that continued what a sibling or somebody outside
  began, or that led to waking a sibling. It finds what has no cycle: pipelines, and servers that are fed
  from outside. A host that cannot measure chains (the level "edges only") gives 1 to all who were ever
  woken like that.
- **short** is the square of the part of its wake-ups that led to short bursts; in a period in which the
  vCPU ran for longer than `burst_ns` after each wake-up, each counts min(1, `burst_ns` / burst). Long bursts
  that other threads began are batch work, unless siblings wait for them, which the rank knows. A server with
  a backlog does not sleep, either: then the many wake-ups before it speak for it, for a second or two.

Without any counted wake-up (the level "none") nothing is known: a rule by bursts alone makes a workload
with long critical and short background bursts 1.25 times slower. So all score 1, which leaves them as they
are, unless `guess` is set.

Where chains are counted, but not for all of a workload's vCPUs, as there are more than the monitor has slots
for, nothing is known of the others: they score what the highest of the counted ones does, which leaves them
as they are. Where only wakers are told, none is an answer, too: nobody woke it.

Where no critical path is to be seen, all score 1, too, and caps and loans ask who answers (`answers.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .memory import COUNT, SEASONED, Counting, Memory
from .parameters import CriticalParameters
from .rank import excesses, reference

FULL = 1000
"""The highest score."""

LONGEST = 10
"""Who computes longer than so many short bursts (20 ms) for each sibling that it wakes is not what they wait
for. The longest critical bursts measured were 6 ms (docs/measurements.md, "Weights that follow the critical
path"); a role that ended is forgotten within 25 periods."""

SILENT = FULL // 10
"""Where nobody in a workload scores more, there is no critical path to see, and nobody is preferred."""


_NONE, _, _CHAINS = Counting


class Scores(NamedTuple):
    """For each vCPU of a workload its score and rank in thousandths, and its excess; the level that all
    had. `silent`: all score FULL because there is no critical path to see."""

    scores: list[int]
    ranks: list[int]
    excess: list[int]
    level: Counting
    silent: bool = False


def judge(
    memories: Sequence[Memory], before: Sequence[int], parameters: CriticalParameters, ages: int = 1
) -> Scores:
    """The scores of one workload's vCPUs; all FULL if there is nothing to tell them apart by."""
    level = max([memory.level for memory in memories], default=_NONE)
    if level is _NONE and not parameters.guess:
        return Scores([FULL] * len(memories), [0] * len(memories), [0] * len(memories), level)
    excess, woke = excesses(memories, before, ages)
    enough = reference(excess)
    ranks = [0] * len(memories)
    if enough:
        longest_ns = parameters.burst_ns * LONGEST
        ranks = [
            each and FULL * min(each, enough) // enough * _steady(memory, out, longest_ns) // FULL
            for each, out, memory in zip(excess, woke, memories, strict=True)
        ]
    scores = [
        rank if rank == FULL else max(rank, _chain(memory, level) * short(memory) // FULL)
        for rank, memory in zip(ranks, memories, strict=True)
    ]
    unheard = [level is _CHAINS and memory.level is _NONE for memory in memories]
    judged = [
        score
        for score, memory, is_unheard in zip(scores, memories, unheard, strict=True)
        if memory.periods >= SEASONED and not is_unheard
    ]
    silent = bool(judged) and max(judged) < SILENT
    if silent or not judged:
        scores = [FULL] * len(memories)
    elif any(unheard):
        highest = max(judged)
        scores = [highest if each else score for each, score in zip(unheard, scores, strict=True)]
    return Scores(scores, ranks, excess, level, silent)


def _steady(memory: Memory, woke: int, longest_ns: int) -> int:
    """How nearly it wakes siblings as often as its computing asks for, in thousandths."""
    return FULL if woke * longest_ns >= memory.run_ns * COUNT else woke * longest_ns // memory.run_ns


def short(memory: Memory) -> int:
    """The part of its wake-ups that led to short bursts, squared, in thousandths."""
    if memory.brief >= memory.bursts:
        return FULL
    part = FULL * memory.brief // memory.bursts
    return part * part // FULL


def _chain(memory: Memory, level: Counting) -> int:
    if level is _CHAINS:
        return min(FULL, FULL * memory.chain_ns // memory.busy_ns)
    return FULL if memory.led or level is _NONE else 0
