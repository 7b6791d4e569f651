"""Whatever a journal file still says, however it was damaged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ...linux.namespaces import Namespaces
from . import codec
from .directory import Notice
from .ledger import Ledger

_ELSEWHERE = (
    "no knob is written or put back here: run `dasec restore` there (lsns(8) finds it from the host);"
    " if it has ended, remove the file"
)


class Salvage(NamedTuple):
    """The state that the intact lines add up to, and what was wrong with the others. `alien`: it holds knobs
    of another version, and we cannot read which, or of another namespace, and whose they are cannot be told
    here; the one notice says so."""

    ledger: Ledger
    notices: tuple[Notice, ...]
    alien: bool = False


def salvage(data: bytes, origin: codec.Origin, where: str, *, exists: bool) -> Salvage:
    """Read a journal of this boot and of these namespaces. Never raises."""
    if not exists:
        return Salvage(Ledger(), ())
    if not data:
        return Salvage(Ledger(), (Notice("journal is empty", where, "it held no entry"),))
    lines = data.split(b"\n")
    torn = lines.pop() if not data.endswith(b"\n") else b""
    if torn:
        lines.append(torn)
    else:
        lines.pop()
    header = codec.decode_header(lines[0]) if lines else None
    if header is not None and header.boot_id != origin.boot_id:
        void = Notice("journal of another boot", where, "void: its knobs ended with that boot's kernel")
        return Salvage(Ledger(), (void,))
    if header is not None and header.schema not in codec.READABLE:
        return _alien(header, where) if lines[1:] else Salvage(Ledger(), ())
    flaws = _flaws(header, torn, where)
    schemas = (header.schema,) if header else codec.READABLE
    seeds = {schema: codec.line_seed(origin.boot_id, schema) for schema in schemas}
    found = _replay(lines[1:] if header else lines, seeds, where, flaws)
    if header is None or header.namespaces in (None, origin.namespaces):
        return found
    return _elsewhere(header.namespaces, origin.namespaces, found, where)


def _elsewhere(theirs: Namespaces, here: Namespaces, found: Salvage, where: str) -> Salvage:
    """By our numbers its threads would seem to have ended, and their prior values would be forgotten."""
    if not (found.ledger.held or found.ledger.groups):
        return found
    kind, its, ours = (
        ("pid", theirs.pid, here.pid) if theirs.pid != here.pid else ("time", theirs.time, here.time)
    )
    what = f"journal of {kind} namespace {its}, this is {ours}"
    return Salvage(Ledger(), (Notice(what, where, _ELSEWHERE),), alien=True)


def _alien(header: codec.Header, where: str) -> Salvage:
    what = f"journal of schema {header.schema}, this version reads {codec.SCHEMA}"
    advice = (
        "no knob is written until `dasec restore` of the version that wrote it has put back what it holds"
    )
    return Salvage(Ledger(), (Notice(what, where, advice),), alien=True)


def _flaws(header: codec.Header | None, torn: bytes, where: str) -> list[Notice]:
    flaws = []
    if header is None:
        flaws.append(Notice("journal has no intact header", where, "lines of this boot are honoured"))
    if torn:
        flaws.append(Notice("journal ends in a torn line", where, "what it was for had not been done yet"))
    return flaws


def _replay(lines: list[bytes], seeds: Mapping[int, int], where: str, flaws: list[Notice]) -> Salvage:
    ledger = Ledger()
    damaged = missing = 0
    last: int | None = None
    for line in lines:
        intact = codec.unframe(line, seeds)
        if intact is None or (last is not None and intact[0] <= last):
            damaged += 1
            continue
        number, entry = intact
        if last is not None:
            missing += number - last - 1
        last = number
        ledger.enter(entry)
    if damaged or missing:
        flaws.append(
            Notice(
                f"journal has {damaged} damaged and {missing} missing lines",
                where,
                f"{len(ledger.held)} knobs of its intact lines are honoured",
            )
        )
    return Salvage(ledger, tuple(flaws))
