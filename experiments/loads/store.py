"""A folder of results: what was asked, and one line for each finished block. Nothing is ever rewritten, so
an interrupted suite goes on where it was."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from dasec.demo.results import RunResult
from dasec.exits import ExitStatus, Refusal

from .cells import Block, Wish

ASKED, RUNS = "asked.json", "runs.jsonl"


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked, and of which host."""

    wish: Wish
    host: dict[str, object]


@dataclass(frozen=True, slots=True)
class Done:
    """A finished block."""

    cell: str
    repetition: int
    runs: tuple[RunResult, ...]

    @property
    def key(self) -> tuple[str, int]:
        """What distinguishes it."""
        return self.cell, self.repetition

    def of(self, arm: str) -> RunResult:
        """The run of one arm."""
        return next(run for run in self.runs if run.arm == arm)


_ASKED, _DONE = TypeAdapter(Asked), TypeAdapter(Done)


@dataclass(frozen=True, slots=True)
class Store:
    """The folder."""

    folder: Path

    def asked(self) -> Asked | None:
        """What the folder belongs to; None if it is new."""
        file = self.folder / ASKED
        if not file.exists():
            return None
        try:
            return _ASKED.validate_json(file.read_bytes())
        except (OSError, ValidationError) as error:
            raise Refusal(ExitStatus.USAGE, f"loads: {file}: cannot be read: name another folder") from error

    def begin(self, asked: Asked) -> None:
        """Make the folder and note what it is for."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / ASKED).write_bytes(_ASKED.dump_json(asked, indent=1) + b"\n")
        except OSError as error:
            raise Refusal(
                ExitStatus.USAGE, f"loads: {self.folder}: {error.strerror}: name another folder"
            ) from error

    def done(self) -> tuple[Done, ...]:
        """All finished blocks. A last line that was cut off does not count."""
        file = self.folder / RUNS
        if not file.exists():
            return ()
        lines = file.read_bytes().split(b"\n")
        return tuple(_DONE.validate_json(line) for line in lines[:-1] if line)

    def add(self, block: Block, runs: Sequence[RunResult]) -> Done:
        """Keep a finished block for good."""
        done = Done(block.cell.name, block.repetition, tuple(runs))
        file = self.folder / RUNS
        whole = file.read_bytes().rpartition(b"\n") if file.exists() else (b"", b"", b"")
        with file.open("ab") as target:
            target.truncate(len(whole[0]) + len(whole[1]))
            target.write(json.dumps(asdict(done)).encode() + b"\n")
            target.flush()
            os.fsync(target.fileno())
        return done
