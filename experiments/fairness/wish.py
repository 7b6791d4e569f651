"""What is to be measured, in which order, and what was: one line for each finished block."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter

from dasec.demo.arms import CONTROL, NONE, settings_of
from dasec.demo.layout import Layout
from dasec.demo.results import RunResult
from dasec.demo.run import Plan
from dasec.demo.scenario import Timing

from .scenarios import CONTESTS

POLICY = "critical"
ARMS = (NONE, CONTROL, POLICY)


@dataclass(frozen=True, slots=True)
class Wish:
    """Everything that was asked for."""

    contests: tuple[str, ...]
    layouts: tuple[str, ...]
    repetitions: int
    timing: Timing
    cores: int
    seed: int


@dataclass(frozen=True, slots=True)
class Block:
    """All arms of one contest in one layout and repetition: they follow each other."""

    contest: str
    layout: str
    repetition: int
    arms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """A finished block."""

    block: Block
    runs: tuple[RunResult, ...]

    def of(self, arm: str) -> RunResult:
        """The run of one arm."""
        return next(run for run in self.runs if run.arm == arm)


def blocks_of(wish: Wish) -> Iterator[Block]:
    """Every contest once a repetition, in another order each time; so are the arms of each block."""
    cells = [(contest, layout) for layout in wish.layouts for contest in wish.contests]
    for repetition in range(wish.repetitions):
        shuffler = random.Random(f"{wish.seed}/{repetition}")
        for contest, layout in shuffler.sample(cells, len(cells)):
            yield Block(contest, layout, repetition, tuple(shuffler.sample(ARMS, len(ARMS))))


def plan_of(wish: Wish, block: Block) -> Plan:
    """The block as the demo's machinery takes it; the guard is off, the policy itself is measured."""
    return Plan(
        CONTESTS[block.contest].scenario(wish.cores),
        Layout(block.layout),
        wish.timing,
        block.arms,
        wish.repetitions,
        random.Random(f"{wish.seed}/{block.contest}/{block.layout}").randrange(2**31),
        {POLICY: settings_of(POLICY)},
    )


_DONE = TypeAdapter(Done)


def read(file: Path) -> tuple[Done, ...]:
    """All finished blocks. A last line that was cut off does not count."""
    lines = file.read_bytes().split(b"\n")[:-1] if file.exists() else []
    return tuple(_DONE.validate_json(line) for line in lines if line)


def add(file: Path, block: Block, runs: Sequence[RunResult]) -> None:
    """Keep a finished block for good."""
    file.parent.mkdir(parents=True, exist_ok=True)
    whole = file.read_bytes().rpartition(b"\n") if file.exists() else (b"", b"", b"")
    with file.open("ab") as target:
        target.truncate(len(whole[0]) + len(whole[1]))
        target.write(json.dumps(asdict(Done(block, tuple(runs)))).encode() + b"\n")
        target.flush()
        os.fsync(target.fileno())
