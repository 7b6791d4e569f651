"""The real daemon for as long as one likes: one that lives, and beside it one that is killed and killed."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.arena import Arena
from tests.chaos.test_chaos import Round, killed_at_work, killed_early, killed_in_an_orderly_stop

from . import flat
from .flat import Sample
from .life import Life

LOOK_S = 0.5
RELOAD_EVERY_S = 2.0


@dataclass
class Findings:
    """What was done, what was seen, and what was wrong."""

    seconds: float
    samples: list[Sample] = field(default_factory=list)
    reloads: int = 0
    rotations: int = 0
    kills: int = 0
    slowest_restore_s: float = 0.0
    wrong: list[str] = field(default_factory=list)

    def faults(self) -> list[str]:
        """Everything that speaks against it."""
        return [*self.wrong, *flat.faults(self.samples)]


def soak(seconds: float, place: Path, seed: int, tell: Callable[[Findings], None]) -> Findings:
    """Run for so long; `tell` hears of each look. Raises AssertionError where a restore is missed."""
    found, stop = Findings(seconds), threading.Event()
    with ThreadPoolExecutor(1) as pool:
        killing = pool.submit(_kill_again_and_again, place / "killed", seed, found, stop)
        try:
            _live(place / "lives", seed, found, tell, lambda: stop.is_set() or killing.done())
        finally:
            stop.set()
        killing.result()
    return found


def _live(
    place: Path, seed: int, found: Findings, tell: Callable[[Findings], None], over: Callable[[], bool]
) -> None:
    place.mkdir(parents=True)
    chance = random.Random(seed)
    arena = Arena(seed * 100)
    life = None
    try:
        life = Life(arena, place, chance)
        until_s = time.monotonic() + found.seconds
        reload_s = time.monotonic() + RELOAD_EVERY_S
        while time.monotonic() < until_s and not over():
            time.sleep(LOOK_S)
            found.samples.append(life.sample())
            if time.monotonic() >= reload_s:
                life.reload()
                reload_s += chance.uniform(0.5, 1.5) * RELOAD_EVERY_S
            found.reloads, found.rotations = life.reloads, life.rotations
            tell(found)
        found.wrong += life.end()
    finally:
        if life is not None:
            life.kill()
        arena.close()


def _kill_again_and_again(place: Path, seed: int, found: Findings, stop: threading.Event) -> None:
    place.mkdir(parents=True)
    chance = random.Random(seed + 1)
    arena = Arena(seed * 100 + 50)
    try:
        while not stop.is_set():
            way = chance.choice((killed_early, killed_at_work, killed_in_an_orderly_stop))
            one = Round(arena, place, chance, "shuffle")
            try:
                way(one)
                took_s = one.await_restored_in(f"kill {found.kills + 1}, {way.__name__}, seed {seed}")
            finally:
                one.daemon.kill()
                one.daemon.wait()
            arena.stop_meddling()
            found.kills += 1
            found.slowest_restore_s = max(found.slowest_restore_s, took_s)
    finally:
        stop.set()
        arena.close()
