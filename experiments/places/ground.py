"""The host while an experiment runs on it: one at a time, and as before afterwards, whatever ends it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import click

from dasec.errors import ExitStatus, Refusal
from dasec.lab.kit import facts
from dasec.lab.kit.blame import BlameWatch
from dasec.lab.kit.errors import Interrupted, interruptible
from dasec.lab.kit.untouched import Look, changes, look

from ..results.store import Asked, WishT

T = TypeVar("T")
Say = Callable[[str], None]
IDENTITY = ("kernel", "machine", "cpus", "cpu_model")


def this_host(known: Asked[WishT] | None, folder: Path) -> dict[str, object]:
    """What measures: as it is known, or found now. Refuses to go on with what another host has measured."""
    now = facts.metadata()
    if known is None:
        return now
    if other := [name for name in IDENTITY if known.host.get(name) != now[name]]:
        raise Refusal(
            ExitStatus.USAGE, f"--out: {folder}: of another host ({', '.join(other)}): name another folder"
        )
    return dict(known.host)


@contextlib.contextmanager
def blame_watch(say: Say, *, wanted: bool) -> Iterator[BlameWatch | None]:
    """Who waits for whom, if that is wanted; says so where it cannot be counted."""
    if not wanted:
        yield None
        return
    watch = BlameWatch()
    try:
        if not watch.works:
            say(f"blame is not measured: {watch.note}")
        yield watch
    finally:
        watch.close()


def keeping(folder: Path, measure: Callable[[], T]) -> T:
    """Measure where nothing of the host changes. Refuses to go on when it is interrupted; the folder keeps
    what was finished."""
    try:
        with interruptible():
            return measure()
    except Interrupted:
        raise Refusal(ExitStatus.FAILED, f"interrupted: {_goes_on(folder)}") from None


def _goes_on(folder: Path) -> str:
    return f"{folder} keeps what was finished: the same command goes on"


def leaving_as_before(folder: Path | None, measure: Callable[[], None]) -> None:
    """Measure. However that ends, says what is not as before. Refuses to go on when it is interrupted; the
    folder, if there is one, keeps what was finished."""
    before = look()
    try:
        with interruptible():
            measure()
    except Interrupted:
        host = "the host is not as before" if _told(before) else "the host is as before"
        kept = f"; {_goes_on(folder)}" if folder else ""
        raise Refusal(ExitStatus.FAILED, f"interrupted: {host}{kept}") from None
    except Refusal:
        _told(before)
        raise
    _told(before)


def _told(before: Look) -> bool:
    """Was there something to tell?"""
    found = changes(before, look())
    for line in found:
        click.echo(f"warning: host not as before: {line}")
    return bool(found)
