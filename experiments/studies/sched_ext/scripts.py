"""Contests for CPU time between VMs, made up from a seed. Pure; the guest imports it, too."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

WEIGHTS = (10, 50, 100, 200, 300, 1000)
HOGS = (2, 3, 4, 8, 20, 60)
FEWEST_VMS, MOST_VMS = 2, 5
ODDS_OF_EQUAL_WEIGHTS, ODDS_OF_ONE_CPU, ODDS_OF_AN_ATTACK = 0.4, 0.3, 0.7


@dataclass(frozen=True, slots=True)
class Actors:
    """Threads that do one thing: `hog` computes; `faker` hands a turn of `run_ms` around a ring of all, as
    one does that is waited for; `sleeper` computes for `run_ms` and sleeps for `sleep_ms`; `herd` does so,
    all at the same moment; `forker` has children that compute for `run_ms` and end; `late` sleeps for
    `sleep_ms` and then computes."""

    kind: str
    threads: int
    run_ms: float = 0.0
    sleep_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Vm:
    """Its weight and who is in it."""

    weight: int
    actors: tuple[Actors, ...]

    @property
    def hogs(self) -> int:
        """Threads that always want to run."""
        return sum(one.threads for one in self.actors if one.kind in ("hog", "late"))


@dataclass(frozen=True, slots=True)
class Script:
    """VMs that want more than all CPUs: all of `cpus`, or the first of them if each thread is `pinned`."""

    name: str
    vms: tuple[Vm, ...]
    pinned: bool = False

    def due(self, cpus: int) -> tuple[float, ...]:
        """In CPUs, by weight: none gets more than it has hogs for, and what it leaves is the others'."""
        cores = 1 if self.pinned else cpus
        return entitled(cores, [(vm.weight, min(cores, vm.hogs)) for vm in self.vms])


def entitled(cores: float, claims: Sequence[tuple[int, float]]) -> tuple[float, ...]:
    """Water-filling over (weight, most that it can use)."""
    found = [0.0] * len(claims)
    left, open_ones = float(cores), set(range(len(claims)))
    while open_ones:
        level = left / sum(claims[one][0] for one in open_ones)
        full = {one for one in open_ones if claims[one][1] <= claims[one][0] * level}
        for one in full or open_ones:
            found[one] = claims[one][1] if full else claims[one][0] * level
        if not full:
            break
        left -= sum(found[one] for one in full)
        open_ones -= full
    return tuple(found)


def script(seed: int) -> Script:
    """The contest of this seed."""
    chance = random.Random(seed)
    pinned = chance.random() < ODDS_OF_ONE_CPU
    equal = chance.random() < ODDS_OF_EQUAL_WEIGHTS
    vms = []
    for _ in range(chance.randint(FEWEST_VMS, MOST_VMS)):
        actors = [Actors("hog", chance.choice((1, *HOGS)))]
        if actors[0].threads > 1 and chance.random() < ODDS_OF_AN_ATTACK:
            actors.append(_attack(chance))
        vms.append(Vm(100 if equal else chance.choice(WEIGHTS), tuple(actors)))
    vms[0] = Vm(vms[0].weight, (Actors("hog", chance.choice(HOGS)), *vms[0].actors[1:]))
    return Script(f"seed-{seed}", tuple(vms), pinned)


def _attack(chance: random.Random) -> Actors:
    run_ms = chance.choice((0.2, 0.5, 1.0, 2.0, 3.9, 4.5, 10.0))
    kind = chance.choice(("faker", "sleeper", "herd", "forker"))
    if kind == "faker":
        return Actors(kind, chance.choice((2, 8, 16)), min(run_ms, 3.9))
    if kind == "forker":
        return Actors(kind, chance.choice((1, 3)), run_ms)
    return Actors(kind, chance.choice((1, 4, 16)), run_ms, chance.choice((1.0, 5.0, 20.0, 150.0)))


SEEN = (
    Script(
        "one beside ten that weigh less", (Vm(100, (Actors("hog", 1),)), Vm(10, (Actors("hog", 10),))), True
    ),
    Script("two beside sixty", (Vm(100, (Actors("hog", 2),)), Vm(100, (Actors("hog", 60),)))),
    Script(
        "two beside fakers",
        (Vm(100, (Actors("hog", 2),)), Vm(100, (Actors("hog", 4), Actors("faker", 16, 1.0)))),
    ),
    Script(
        "three weights, one sleeps in a herd",
        (
            Vm(300, (Actors("hog", 2),)),
            Vm(100, (Actors("hog", 8),)),
            Vm(100, (Actors("hog", 2), Actors("herd", 16, 3.9, 150.0))),
        ),
    ),
    Script(
        "one beside forks",
        (Vm(100, (Actors("hog", 2),)), Vm(100, (Actors("hog", 2), Actors("forker", 3, 2.0)))),
    ),
    Script(
        "four that wake one after the other",
        tuple(Vm(100, (Actors("late", 2, 0.0, 1500.0 + 5 * number),)) for number in range(4)),
        True,
    ),
    replace(script(136), name="one thread of a VM that weighs much, beside a herd"),
    replace(script(164), name="a ring, a sleeper and forks, each beside hogs, on one CPU"),
)
"""Those that every change is tried on. Of the first two the rule before had 16 % of a CPU and 6 % of two."""
