"""Re-decide a record: rebuild every Period, ask the policy again, compare byte for byte."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from ..guard import Guarded, GuardParameters, GuardState
from ..linux import regular_file
from ..model import Decision, Period, PolicyState
from ..plan import plan
from ..policies import POLICIES, TABLES, Parameters, policy_named, unlike_default
from ..policy import Policy
from ..reservations.keep import ReservationState, Reserving
from ..reservations.parameters import ReservationParameters
from .checksum import SEAL_LENGTH, unseal
from .entries import READABLE, Decoder, PeriodLine, change_row, decision_row
from .lines import EMPTY, FIRST_BYTES, LONGEST_BYTES, MALFORMED, TOO_LONG, lines_of

SHOWN_BYTES = 160
"""How much of a differing decision the message shows."""


NO_HEADER = "not the header of a DASEC record: give a file that `dasec run` wrote"


class ReplayFailed(Exception):
    """The record does not say what the policy would have done; the message begins with FILE:LINE."""


class NoRecord(ReplayFailed):
    """Nobody recorded anything in this file."""


class _Differs(Exception):
    """What is wrong with one line."""


class _NoHeader(_Differs):
    """It should be a header."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What was replayed, and what is worth knowing about the record."""

    periods: int
    changes: int
    notices: tuple[str, ...]


@dataclass(slots=True)
class _Run:
    """From one header to the next."""

    policy: Policy
    state: PolicyState
    chain: int
    decoder: Decoder


def replay(path: Path) -> Replayed:
    """Re-decide every period of the record. Raises ReplayFailed, of which NoRecord is one, or OSError."""
    run: _Run | None = None
    periods = changes = 0
    notices: tuple[str, ...] = ()
    with regular_file.opened(path) as file:
        for number, line in enumerate(lines_of(file), start=1):
            if number == 1 and not line.startswith(FIRST_BYTES):
                raise NoRecord(f"{path}:1: {NO_HEADER}")
            if len(line) > LONGEST_BYTES:
                raise ReplayFailed(f"{path}:{number}: {TOO_LONG}")
            if not line.endswith(b"\n"):
                notices = (f"{path}:{number}: is cut short, as a killed daemon leaves it: not replayed",)
                break
            try:
                if run is None or line.startswith(FIRST_BYTES):
                    run = _begin(line[:-1])
                else:
                    changes += _redecide(run, line[:-1])
                    periods += 1
            except _Differs as difference:
                is_none = number == 1 and isinstance(difference, _NoHeader)
                failed = NoRecord if is_none else ReplayFailed
                raise failed(f"{path}:{number}: {difference}") from difference
        if not os.fstat(file.fileno()).st_size:
            raise NoRecord(f"{path}: {EMPTY}")
    if not periods:
        raise ReplayFailed(f"{path}: holds no period: give a file that `dasec run --record` wrote")
    return Replayed(periods, changes, notices)


def _begin(line: bytes) -> _Run:
    """The policy in the state that a header gives."""
    try:
        header = json.loads(line)
        schema = header["dasec_record"]
    except MALFORMED as error:
        raise _NoHeader(NO_HEADER) from error
    if schema not in READABLE:
        known = " and ".join(map(str, READABLE))
        raise _Differs(f"record schema {schema}, this dasec reads {known}: replay with the one that wrote it")
    opened = unseal(line, 0)
    if opened is None:
        raise _Differs(_changed(line))
    try:
        name, given, remembered = header["policy"], header["parameters"], header["state"]
        known_here = name in POLICIES
    except MALFORMED as error:
        raise _NoHeader(NO_HEADER) from error
    if not known_here:
        raise _Differs(f"no policy named {name!r} in this build: replay with the one that wrote it")
    try:
        policy = policy_named(name, _parameters(given))
        state = TypeAdapter(state_type(policy)).validate_json(to_json(remembered))
    except ValidationError as error:
        raise _Differs(f"parameters or state of another build: {error.errors()[0]['msg']}") from error
    return _Run(policy, state, opened[1], Decoder())


def _parameters(header: object) -> Parameters:
    """As `written` wrote them; what an older build did not know is as by default."""
    tables = TypeAdapter(dict[str, object]).validate_python(header)
    guard = TypeAdapter(GuardParameters | None).validate_json(to_json(tables.get("guard")))
    read: list[object] = [
        TypeAdapter(kind).validate_json(to_json(tables[name]))
        for name, kind in TABLES.items()
        if name in tables
    ]
    reservations = TypeAdapter(ReservationParameters | None).validate_json(
        to_json(tables.get("reservations"))
    )
    return Parameters(unlike_default(read), guard, reservations)


def state_type(policy: Policy) -> type[PolicyState]:
    """What a header's state is read as; that of a policy around a policy holds the state of that in it."""
    if isinstance(policy, Guarded):
        return cast(type[PolicyState], GuardState[state_type(policy.inner)])  # type: ignore[misc]
    if isinstance(policy, Reserving):
        return cast(type[PolicyState], ReservationState[state_type(policy.inner)])  # type: ignore[misc]
    return type(policy.initial_state())


def _redecide(run: _Run, line: bytes) -> int:
    """Decide one period again; how many changes it planned."""
    opened = unseal(line, run.chain)
    if opened is None:
        raise _Differs(_changed(line))
    body, run.chain = opened
    try:
        period, recorded = run.decoder.period(body)
    except MALFORMED as error:
        raise _Differs(f"not a period of this record ({error!r})") from error
    decision = run.policy.decide(period, run.state)
    _compare(
        "the decision differs", recorded["decision"], decision_row(decision, run.decoder.layout, run.state)
    )
    planned = _compare_plan(run, period, recorded, decision)
    run.state = decision.state
    return planned


def _compare_plan(run: _Run, period: Period, recorded: PeriodLine, decision: Decision) -> int:
    """Were exactly the planned writes tried?"""
    planned = [change_row(change, run.decoder.layout) for change in plan(period, decision).changes]
    _compare("the planned changes differ", [row[:5] for row in recorded.get("results", ())], planned)
    return len(planned)


def _compare(what: str, recorded: object, replayed: object) -> None:
    before, now = to_json(recorded), to_json(replayed)
    if before != now:
        at = next((at for at, (a, b) in enumerate(zip(before, now, strict=False)) if a != b), 0)
        start = max(0, at - SHOWN_BYTES // 4)
        raise _Differs(f"{what}: recorded …{_excerpt(before, start)}…, replayed …{_excerpt(now, start)}…")


def _excerpt(text: bytes, start: int) -> str:
    return text[start : start + SHOWN_BYTES].decode("utf-8", "replace")


def _changed(line: bytes) -> str:
    """What a wrong checksum means."""
    tail = line[-SEAL_LENGTH:]
    if not tail.startswith(b',"crc":"'):
        return "has no checksum at its end: not written by `dasec run`"
    return "its checksum is wrong: it, or the line before it, was changed, lost or moved since it was written"
