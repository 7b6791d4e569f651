"""Ideal cores that divide themselves by weight among whoever wants to run, and actors that do so by a script.

An actor is one thread, or several that hand one turn around, of whom one wants to run at a time. Its work
comes in bursts. Whoever has to wait has ready time: from the burst's coming to its end, less what it ran.
What follows from being late is the actor's nature (`Kind`). So the same script can be played with and
without a policy, and what workloads get is compared (`Stage.got_ms`).

Several cores are either one pool, in which nobody has more than one core, or cores with threads placed on
them by weight, the heaviest first, which is what a kernel's balancing comes to.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from ..builders import Row

NEUTRAL = 1024
SHUFFLE_MS = 10.0
"""Threads of the same weight change places so often, so that a core with one more of them is nobody's lot."""

NEVER = float("inf")
SLIGHT = 1e-6


class Kind(Enum):
    """What an actor does that could not finish a burst when the next one is due."""

    CATCHES_UP = auto()
    """Its work comes from outside: what is left is done later."""
    GIVES_UP = auto()
    """It goes by the clock: what is left is dropped."""
    THINKS = auto()
    """The next burst comes so long after the end of the last."""


@dataclass(frozen=True)
class Act:
    """What an actor does in a scene: the part of a core it needs, in so many bursts a look, and what is
    counted of its wake-ups in 80 ms: (actor, times), all, from outside; and which part is chain."""

    needs: float
    bursts: int = 1
    woken_by: tuple[tuple[int, int], ...] = ()
    wakeups: int = 0
    external: int = 0
    chain: float = 0.0


@dataclass(frozen=True)
class Actor:
    """Threads that share one turn, and one act a scene."""

    acts: Sequence[Act]
    kind: Kind = Kind.GIVES_UP
    members: int = 1
    phase: float = 0.0


@dataclass(frozen=True)
class Play:
    """Workloads of actors; each scene lasts so many looks, and after the last comes the first again."""

    workloads: Sequence[Sequence[Actor]]
    scene_looks: int = 1
    cores: int = 1
    placed: bool = False


class Stage:
    """One world in which a play is played, look by look."""

    def __init__(self, play: Play, look_ms: float) -> None:
        self.play, self.look_ms = play, look_ms
        self.actors = [actor for workload in play.workloads for actor in workload]
        self.got_ms = [0.0] * len(self.actors)
        self.offered_ms = [0.0] * len(self.actors)
        self._home = [home for home, workload in enumerate(play.workloads) for _ in workload]
        self._left_ms = [0.0] * len(self.actors)
        self._next_ms = [actor.phase * look_ms for actor in self.actors]
        self._order = list(range(len(self.actors)))
        self._chance = random.Random(1)

    def act(self, actor: int, look: int) -> Act:
        acts = self.actors[actor].acts
        return acts[look // self.play.scene_looks % len(acts)]

    def pass_look(self, look: int, weights: Sequence[float]) -> tuple[list[float], list[float]]:
        """How long each actor ran, and for how long it wanted to, with these weights."""
        ran, wanted = [0.0] * len(self.actors), [0.0] * len(self.actors)
        left, come = self._left_ms, self._next_ms
        now, end = look * self.look_ms, (look + 1) * self.look_ms
        acts = [self.act(actor, look) for actor in range(len(self.actors))]
        known: dict[tuple[int, ...], list[float]] = {}
        shuffled = now
        while now < end - SLIGHT:
            for at, act in enumerate(acts):
                if come[at] <= now + SLIGHT:
                    self._come(at, act, now)
            if self.play.placed and now >= shuffled:
                self._chance.shuffle(self._order)
                known.clear()
                shuffled += SHUFFLE_MS
            active = tuple([at for at, each in enumerate(left) if each > SLIGHT])
            if active not in known:
                known[active] = self._rates(active, weights)
            rates = known[active]
            until = min(end, min(come))
            if self.play.placed:
                until = min(until, shuffled)
            step = max(until - now, SLIGHT)
            for at, rate in zip(active, rates, strict=True):
                step = min(step, left[at] / rate)
            for at, rate in zip(active, rates, strict=True):
                ran[at] += rate * step
                wanted[at] += step
                left[at] -= rate * step
                if left[at] <= SLIGHT:
                    left[at] = 0.0
                    if self.actors[at].kind is Kind.THINKS:
                        come[at] = now + step + self._rest_ms(acts[at])
            now += step
        for at, each in enumerate(ran):
            self.got_ms[at] += each
        return ran, wanted

    def _come(self, at: int, act: Act, now: float) -> None:
        work_ms = act.needs * self.look_ms / act.bursts
        kind = self.actors[at].kind
        self.offered_ms[at] += work_ms
        self._left_ms[at] = work_ms + (self._left_ms[at] if kind is Kind.CATCHES_UP else 0.0)
        self._next_ms[at] = now + self.look_ms / act.bursts
        if kind is Kind.THINKS and work_ms:
            self._next_ms[at] = NEVER

    def _rest_ms(self, act: Act) -> float:
        return max(0.0, (1 - act.needs) * self.look_ms / act.bursts)

    def _rates(self, active: Sequence[int], weights: Sequence[float]) -> list[float]:
        if not self.play.placed:
            return pooled([weights[at] for at in active], self.play.cores)
        loads, on = [0.0] * self.play.cores, dict[int, int]()
        known = set(active)
        for at in sorted([at for at in self._order if at in known], key=lambda at: -_class(weights[at])):
            on[at] = loads.index(min(loads))
            loads[on[at]] += weights[at]
        return [weights[at] / loads[on[at]] for at in active]

    def rows(self, home: int, look: int, ran: Sequence[float], wanted: Sequence[float]) -> list[Row]:
        """What a workload's counters show after a look; the weights are for the caller to put in."""
        mine = [at for at, its in enumerate(self._home) if its == home]
        first, rows = dict[int, int](), 0
        for at in mine:
            first[at - mine[0]] = rows
            rows += self.actors[at].members
        periods = max(1, round(self.look_ms / 80))
        made = []
        for at in mine:
            act, members = self.act(at, look), self.actors[at].members
            for member in range(members):
                wakers = [(first[waker], count * periods) for waker, count in act.woken_by if waker in first]
                if members > 1:
                    turns = round(ran[at] / 0.5 / members)
                    wakers = [(first[at - mine[0]] + (member - 1) % members, turns)] if turns else []
                made.append(
                    Row(
                        ran[at] / members,
                        ready_ms=(wanted[at] - ran[at]) / members,
                        woken_by=wakers,
                        wakeups=wakers[0][1] if members > 1 and wakers else act.wakeups * periods,
                        external=act.external * periods,
                        chain_ms=(1.0 if members > 1 else act.chain) * wanted[at] / members,
                    )
                )
        return made


def pooled(weights: Sequence[float], cores: int) -> list[float]:
    """Parts of a core in proportion to weight, nobody more than one."""
    rates, left = [1.0] * len(weights), float(cores)
    unmet = list(range(len(weights)))
    while unmet:
        total = sum([weights[at] for at in unmet])
        full = [at for at in unmet if weights[at] * left >= total]
        if not full:
            for at in unmet:
                rates[at] = weights[at] * left / total
            break
        left -= len(full)
        unmet = [at for at in unmet if at not in full]
    return rates


def _class(weight: float) -> int:
    """Weights that differ by less than a half or so are alike to who balances."""
    return round(2 * math.log2(weight))


def entitled_ms(needs_ms: Sequence[float], cores: int, span_ms: float) -> list[float]:
    """What equal weights are worth in so much time: nobody has more than it needs, or more than one core,
    and the others divide what is left (docs/decisions/0021-due.md)."""
    got, left, unmet = list(needs_ms), cores * span_ms, set(range(len(needs_ms)))
    while unmet:
        part = min(left / len(unmet), span_ms)
        met = {at for at in unmet if needs_ms[at] <= part}
        for at in met or unmet:
            got[at] = min(needs_ms[at], part)
        left -= sum([got[at] for at in met])
        unmet = unmet - met if met else set()
    return got
