"""A folder of results: what was asked, and one line for each finished block. Nothing is ever rewritten, so
an interrupted experiment goes on where it was. A block that was measured once more counts as the last time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from dasec.errors import ExitStatus, Refusal
from dasec.lab.kit.results import RunResult

from ..plan.blocks import Block, Named

ASKED, RUNS, BEGUN = "asked.json", "runs.jsonl", "begun.jsonl"
MAY_GROW = "repetitions"
"""Of what was asked: more of the same is welcome, anything else would mix what cannot be compared."""

WishT = TypeVar("WishT")
LineT = TypeVar("LineT")


@dataclass(frozen=True, slots=True)
class Asked(Generic[WishT]):
    """What was asked, and of which host."""

    wish: WishT
    host: dict[str, object]


@dataclass(frozen=True, slots=True)
class Done:
    """A finished block."""

    cell: str
    repetition: int
    runs: tuple[RunResult, ...]
    interrupted: bool = False
    """Some of its runs are of another time than the others: what drifts slowly does not cancel in it."""

    @property
    def key(self) -> tuple[str, int]:
        """What distinguishes it."""
        return self.cell, self.repetition

    def of(self, arm: str) -> RunResult:
        """The run of one arm."""
        found = next((run for run in self.runs if run.arm == arm), None)
        if found is None:
            has = ", ".join(run.arm for run in self.runs)
            raise Refusal(
                ExitStatus.USAGE,
                f"{self.cell}, repetition {self.repetition + 1}: has no run of {arm}, but of {has}:"
                " take its line out of the results",
            )
        return found


@dataclass(frozen=True, slots=True)
class Begun:
    """A finished run of a block that is not finished."""

    cell: str
    repetition: int
    run: RunResult


_DONE = TypeAdapter(Done)
_BEGUN = TypeAdapter(Begun)


def asked_in(folder: Path) -> Mapping[str, object] | None:
    """What a folder was asked for, of whatever kind; None if it is no folder of results."""
    try:
        found = json.loads((folder / ASKED).read_bytes())["wish"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, dict) else None


def done_in(lines: Iterable[str | bytes]) -> tuple[Done, ...]:
    """The finished blocks of a file, a line each."""
    return tuple(map(_DONE.validate_json, lines))


@dataclass(frozen=True, slots=True)
class Store(Generic[WishT]):
    """The folder, whose wishes are of that class."""

    folder: Path
    wishes: type[WishT]

    def asked(self) -> Asked[WishT] | None:
        """What the folder belongs to; None if it is new."""
        file = self.folder / ASKED
        if not file.exists():
            return None
        try:
            found = json.loads(file.read_bytes())
            # By way of JSON, where an array may be a tuple also for strict schemas.
            wish = TypeAdapter(self.wishes).validate_json(json.dumps(found["wish"]))
            return Asked(wish, dict(found["host"]))
        except (OSError, ValueError, KeyError, TypeError, ValidationError) as error:
            raise Refusal(ExitStatus.USAGE, f"{file}: cannot be read: name another folder") from error

    def kept(self) -> Asked[WishT]:
        """What the folder, which is not new, belongs to."""
        known = self.asked()
        assert known is not None
        return known

    def asked_for(self, wish: WishT) -> Asked[WishT] | None:
        """What the folder belongs to; None if it is new. Refuses what its results were not asked for."""
        known = self.asked()
        if known is not None:
            self.check_options(known, wish)
        return known

    def begin(self, asked: Asked[WishT]) -> None:
        """Make the folder and note what it is for."""
        text = json.dumps({"wish": self.plain(asked.wish), "host": asked.host}, indent=1)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / ASKED).write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise Refusal(
                ExitStatus.USAGE, f"{self.folder}: {error.strerror}: name another folder"
            ) from error

    def check_options(self, known: Asked[WishT], wish: WishT) -> None:
        """Refuses what the folder's results were not asked for."""
        mine, theirs = self.plain(wish), self.plain(known.wish)
        other = sorted(name for name in mine if mine[name] != theirs[name] and name != MAY_GROW)
        if other:
            what = f"--out: holds results of other options ({', '.join(other)}): name another folder"
            raise Refusal(ExitStatus.USAGE, what)

    def belonging_to(self, known: Asked[WishT] | None, wish: WishT, host: dict[str, object]) -> Asked[WishT]:
        """Begun now, or known and of the same host. Refuses to go on with what another one has measured."""
        if known is None:
            known = Asked(wish, host)
            self.begin(known)
        elif known.host != host:
            raise Refusal(ExitStatus.USAGE, f"--out: {self.folder}: of another build: name another folder")
        return known

    def done(self) -> tuple[Done, ...]:
        """All finished blocks. A last line that was cut off does not count."""
        return tuple({one.key: one for one in _read(_DONE, self.folder / RUNS)}.values())

    def add(self, block: Block[Named], runs: Sequence[RunResult], *, interrupted: bool = False) -> Done:
        """Keep a finished block for good."""
        done = Done(block.cell.name, block.repetition, tuple(runs), interrupted)
        _append(self.folder / RUNS, asdict(done))
        (self.folder / BEGUN).unlink(missing_ok=True)
        return done

    def keep(self, block: Block[Named], run: RunResult) -> None:
        """Keep a finished run until its block is finished."""
        _append(self.folder / BEGUN, asdict(Begun(block.cell.name, block.repetition, run)))

    def begun(self, block: Block[Named]) -> tuple[RunResult, ...]:
        """The finished runs of a block that is not finished."""
        found = _read(_BEGUN, self.folder / BEGUN)
        return tuple(one.run for one in found if (one.cell, one.repetition) == block.key)

    def records(self, block: Block[Named]) -> Path:
        """An emptied place for the daemon's records of a block that is measured now."""
        folder = self.folder / "records" / block.cell.name
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob(f"{block.repetition}-*"):
            old.unlink()
        return folder

    def plain(self, wish: WishT) -> dict[str, object]:
        """All of its keys, those that nobody gave as well."""
        plain: dict[str, object] = TypeAdapter(self.wishes).dump_python(wish, mode="json")
        return plain


def _read(kind: TypeAdapter[LineT], file: Path) -> Iterator[LineT]:
    """Its lines, without what an interruption cut off. Refuses one that is something else."""
    if not file.exists():
        return
    try:
        lines = file.read_bytes().split(b"\n")[:-1]
    except OSError as error:
        raise Refusal(ExitStatus.USAGE, f"{file}: {error.strerror}: name another folder") from error
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            yield kind.validate_json(line)
        except ValidationError as error:
            what = f"{file}: line {number} is damaged: take it out: the same command measures it anew"
            raise Refusal(ExitStatus.USAGE, what) from error


def _append(file: Path, value: dict[str, object]) -> None:
    """One more line, on the disk when this returns; what an interruption cut off before is gone. Refusal
    where it cannot be written."""
    whole = file.read_bytes().rpartition(b"\n") if file.exists() else (b"", b"", b"")
    try:
        with file.open("ab") as target:
            target.truncate(len(whole[0]) + len(whole[1]))
            target.write(json.dumps(value).encode() + b"\n")
            target.flush()
            os.fsync(target.fileno())
    except OSError as error:
        what = f"{file}: {error.strerror}: mend that: the same command goes on"
        raise Refusal(ExitStatus.FAILED, what) from error
