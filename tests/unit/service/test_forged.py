"""Period lines that a forger gave right checksums: one line that says which, of whoever reads records."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from dasec.record.lines import Unreadable
from dasec.record.replay import ReplayFailed, replay
from dasec.record.shape import REQUIRED, wrong_key
from dasec.record.tail import RecordTail

from .periods import busy_history
from .recording import recorded
from .test_replay import reseal

LAST = 5
"""The header, and four periods."""

FORGED: list[object] = ["x", -1.5, [["x"]], {"x": "x"}, None]


def places(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every place in a line that holds something."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


def put(line: dict[str, object], path: tuple[str | int, ...], value: object) -> dict[str, object]:
    """The line with that in a place."""
    forged = copy.deepcopy(line)
    inner: object = forged
    for key in path[:-1]:
        inner = inner[key]  # type: ignore[index]
    inner[path[-1]] = value  # type: ignore[index]
    return forged


@pytest.fixture
def path(tmp_path: Path) -> Path:
    recorded(tmp_path / "r", busy_history(LAST - 1))
    return tmp_path / "r"


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("clock_ns", "now"),
        ("length_ns", 0),
        ("usage", [[0, "much", 0, 0, "ready", 0, []]]),
        ("usage", [[0, 1, 0, 0, "asleep", 0, []]]),
        ("stages_ns", {"observe_ns": "long"}),
        ("results", [[99, "weight", 1, 2, "rule", "applied"]]),
        ("results", [[0, "weight", "a", 2, "rule", "applied"]]),
        ("held", [[0, "mood", 1, 2, "rule", "applied", "", [], 1, 1]]),
        ("late_periods", "many"),
    ],
)
def test_who_reads_a_record_from_its_end_says_which_line_is_no_period(
    path: Path, key: str, value: object
) -> None:
    def forge(number: int, line: dict[str, object]) -> None:
        if number == LAST:
            line[key] = value

    reseal(path, forge)
    with pytest.raises(Unreadable, match=f"{path}:{LAST}: not a period of a record"):
        list(RecordTail(path).read())


def test_a_replay_says_which_line_is_no_period(path: Path) -> None:
    def forge(number: int, line: dict[str, object]) -> None:
        if number == LAST:
            line["usage"] = [[0, "much", 0, 0, "ready", 0, []]]

    reseal(path, forge)
    with pytest.raises(ReplayFailed, match=f"{path}:{LAST}: not a period of this record .*'usage'"):
        replay(path)


def test_lines_that_a_daemon_wrote_are_of_the_form_of_lines(path: Path) -> None:
    assert [wrong_key(line) for line in lines(path)[1:]] == [None] * (LAST - 1)


def test_a_key_that_is_never_left_out_is_missed(path: Path) -> None:
    whole = lines(path)[1]
    for key in REQUIRED:
        assert wrong_key({name: value for name, value in whole.items() if name != key}) == key


def test_a_value_of_another_type_is_found_wherever_it_is(path: Path) -> None:
    for line in lines(path)[1:]:
        for place in places(line):
            wrong = [wrong_key(put(line, place, value)) for value in FORGED]
            assert place[0] in ("crc", "decision") or place[0] in wrong, place
            assert set(wrong) <= {None, place[0]}
