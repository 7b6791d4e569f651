"""Replay succeeds exactly if every decision comes out the same again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from dasec import paper
from dasec.critical import Critical, CriticalParameters
from dasec.log import Announcer
from dasec.model import Decision, Outcome, PolicyState, Result
from dasec.paper import Dasec
from dasec.plan import plan
from dasec.policies import Parameters, policy_named
from dasec.policy import Policy
from dasec.record.checksum import SEAL_LENGTH, seal
from dasec.record.entries import Entry
from dasec.record.file import RecordFile
from dasec.record.replay import ReplayFailed, replay
from dasec.rla import RlaParameters

from .periods import busy_history, histories

SETTINGS = Parameters((RlaParameters(step_percent=20), CriticalParameters(guess=True)))


def record(path: Path, policy: Policy, entries: list[Entry], max_bytes: int = 10**8) -> list[Entry]:
    """Writes what a daemon with this policy would have written for these periods."""
    state: PolicyState = policy.initial_state()
    file = RecordFile(path, policy.name, SETTINGS, Announcer(), max_bytes=max_bytes, files=9)
    decided = []
    for entry in entries:
        decision = policy.decide(entry.period, state)
        planned = plan(entry.period, decision)
        results = tuple(Result(change, Outcome.APPLIED) for change in planned.changes)
        decided.append(entry._replace(decision=decision, results=results, violations=planned.violations))
        file.write(decided[-1], state)
        state = decision.state
    file.close()
    return decided


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    path = tmp_path / "r"
    record(path, paper.KIND.build(SETTINGS), busy_history(12))
    return path


def reseal(path: Path, change: Callable[[int, dict[str, object]], None]) -> None:
    """Changes lines and gives them right checksums: what a forger, not an accident, would do."""
    chain = 0
    sealed = b""
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        content = json.loads(line[:-SEAL_LENGTH] + b"}")
        change(number, content)
        body = json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()
        new, chain = seal(body, chain)
        sealed += new
    path.write_bytes(sealed)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(histories())
@pytest.mark.parametrize("name", ["none", "static", "bvt", "parties", "dasec", "critical"])
def test_whatever_happened_its_record_replays(tmp_path: Path, name: str, entries: list[Entry]) -> None:
    path = tmp_path / "r"
    path.unlink(missing_ok=True)
    record(path, policy_named(name, SETTINGS), entries)
    assert replay(path).periods == len(entries)


def test_a_record_of_a_busy_host_replays_with_its_changes(recorded: Path) -> None:
    verdict = replay(recorded)
    assert verdict.periods == 12
    assert verdict.changes > 12
    assert verdict.notices == ()


def test_every_file_of_a_rotated_record_replays_by_itself(tmp_path: Path) -> None:
    entries = busy_history(12)
    record(tmp_path / "r", paper.KIND.build(SETTINGS), entries, max_bytes=6000)
    files = sorted(tmp_path.iterdir())
    assert len(files) > 2
    assert sum(replay(path).periods for path in files) == len(entries)


def test_lines_leave_out_what_critical_remembers_and_every_file_replays_by_itself(tmp_path: Path) -> None:
    entries = busy_history(36)
    record(tmp_path / "r", Critical(CriticalParameters(guess=True)), entries, max_bytes=12000)
    files = sorted(tmp_path.iterdir())
    assert len(files) > 2
    for path in files:
        header, *lines = path.read_bytes().splitlines()
        assert b'"memories"' in header
        assert not any(b'"memories"' in line for line in lines)
    assert sum(replay(path).periods for path in files) == len(entries)


def test_a_changed_byte_anywhere_fails_with_the_number_of_its_line(recorded: Path) -> None:
    lines = recorded.read_bytes().splitlines(keepends=True)
    for number in range(1, len(lines) + 1):
        line = lines[number - 1]
        for at in range(40, len(line) - 1, len(line) // 3):
            changed = line[:at] + bytes([line[at] ^ 1]) + line[at + 1 :]
            recorded.write_bytes(b"".join([*lines[: number - 1], changed, *lines[number:]]))
            said = "its checksum is wrong|no checksum" + "|not the header" * (number == 1)
            with pytest.raises(ReplayFailed, match=rf"{recorded}:{number}: .*({said})"):
                replay(recorded)


def test_a_lost_line_is_noticed(recorded: Path) -> None:
    lines = recorded.read_bytes().splitlines(keepends=True)
    recorded.write_bytes(b"".join(lines[:4] + lines[5:]))
    with pytest.raises(ReplayFailed, match=":5: its checksum is wrong"):
        replay(recorded)


def test_a_forged_decision_is_found_although_its_checksum_is_right(recorded: Path) -> None:
    def forge(number: int, line: dict[str, object]) -> None:
        decision = line.get("decision")
        if number == 5 and isinstance(decision, dict):
            decision["knobs"][0][2] += 1

    reseal(recorded, forge)
    with pytest.raises(ReplayFailed, match=r":5: the decision differs: recorded ….*…, replayed …"):
        replay(recorded)


def test_a_forged_input_is_found_by_the_decision_that_it_should_have_caused(recorded: Path) -> None:
    def forge(number: int, line: dict[str, object]) -> None:
        usage = line.get("usage")
        if number == 4 and isinstance(usage, list):
            for row in usage:
                row[1] = 0

    reseal(recorded, forge)
    with pytest.raises(ReplayFailed, match=":4: the decision differs"):
        replay(recorded)


def test_a_write_that_was_never_planned_is_found(recorded: Path) -> None:
    def forge(number: int, line: dict[str, object]) -> None:
        results = line.get("results")
        if number == 3 and isinstance(results, list):
            results.pop()

    reseal(recorded, forge)
    with pytest.raises(ReplayFailed, match=":3: the planned changes differ"):
        replay(recorded)


def test_resealing_alone_changes_nothing(recorded: Path) -> None:
    before = replay(recorded)
    reseal(recorded, lambda number, line: None)
    assert replay(recorded) == before


def test_a_last_line_that_was_cut_short_is_tolerated_with_a_notice(recorded: Path) -> None:
    recorded.write_bytes(recorded.read_bytes()[:-30])
    verdict = replay(recorded)
    assert verdict.periods == 11
    assert verdict.notices == (f"{recorded}:13: is cut short, as a killed daemon leaves it: not replayed",)


def test_a_header_in_the_middle_begins_anew(recorded: Path) -> None:
    recorded.write_bytes(recorded.read_bytes() * 2)
    assert replay(recorded).periods == 24


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty: give a file that"),
        (b"root:x:0:0\n", ":1: not the header of a DASEC record"),
        (b"[]\n", ":1: not the header of a DASEC record"),
        (
            b'{"dasec_record":99}\n',
            ":1: record schema 99, this dasec reads 1 and 2: replay with",
        ),
        (b'{"dasec_record":1}\n', ":1: has no checksum at its end"),
        (b"\xff\xfe\n", ":1: not the header of a DASEC record"),
    ],
)
def test_what_is_no_record_is_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "r"
    path.write_bytes(content)
    with pytest.raises(ReplayFailed) as caught:
        replay(path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("policy", [], "not the header of a DASEC record"),
        ("policy", "magic", "no policy named 'magic' in this build"),
        ("parameters", {"tsa": {"step_percent": 1000}}, "parameters or state of another build"),
        ("parameters", [], "parameters or state of another build"),
        ("parameters", {"tsa": None}, "parameters or state of another build"),
        ("state", {"started": "yes"}, "parameters or state of another build"),
    ],
)
def test_a_header_of_another_build_is_one_line(recorded: Path, key: str, value: object, message: str) -> None:
    def forge(number: int, line: dict[str, object]) -> None:
        if number == 1:
            line[key] = value

    reseal(recorded, forge)
    with pytest.raises(ReplayFailed, match=f":1: {message}"):
        replay(recorded)


def test_a_policy_that_decides_otherwise_now_fails(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Dasec, "decide", lambda self, period, state: Decision(state=state))
    with pytest.raises(ReplayFailed, match=":2: the decision differs"):
        replay(recorded)


@pytest.mark.parametrize("key", ["policy", "parameters", "state"])
def test_a_header_without_all_that_one_has_is_one_line(recorded: Path, key: str) -> None:
    def forge(number: int, line: dict[str, object]) -> None:
        if number == 1:
            del line[key]

    reseal(recorded, forge)
    with pytest.raises(ReplayFailed, match=":1: not the header of a DASEC record"):
        replay(recorded)
