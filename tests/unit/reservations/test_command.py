"""`dasec reserve --what-if`: what it prints, and what it says of what it cannot read."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from dasec.commands.cli import commands
from dasec.errors import Refusal


def reserve(*arguments: str) -> Result:
    return CliRunner().invoke(commands, ["reserve", "--what-if", "--machine", "1x6x1", *arguments])


def said(*arguments: str) -> tuple[int, str]:
    """Status and line of a refusal."""
    error = reserve(*arguments).exception
    assert isinstance(error, Refusal)
    return error.status, error.lines[0]


def test_the_map_shows_who_has_which_cores() -> None:
    shown = reserve("stream=3.5:exclusive", "batch=1").output.splitlines()
    assert shown[0] == "socket 0: 0-2: stream  3: stream 0.5  4-5: pool"
    assert "stream               exclusive      3.5     4  0-3              3.5" in shown
    assert "batch                shared           1     3  3-5              1" in shown
    assert shown[-2:] == [
        "stream=3.5:exclusive: everybody else on 3-5, then stream on 0-3",
        "batch=1: batch on 3-5",
    ]


def test_json_says_the_same() -> None:
    said = json.loads(reserve("--json", "stream=3.5:exclusive", "release=stream").output)
    assert said["pool"] == [0, 1, 2, 3, 4, 5]
    assert said["workloads"] == {}
    assert [step["writes"][-1]["workload"] for step in said["steps"]] == ["stream", None]


def test_a_reservation_that_cannot_be_kept_is_refused_and_the_others_are_shown() -> None:
    done = reserve("a=4:whole", "b=3:whole", "c=1")
    assert isinstance(done.exception, Refusal)
    assert done.exception.lines == ("refused: b: wants 3 CPUs, and 2 CPUs are not given yet",)
    assert done.exception.status == 1
    assert "c=1: c on 4-5" in done.output


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("web",), "web: is not NAME=CPUS[:CLASS]: write for instance web=2.5:exclusive"),
        (("web=1:gold",), "web=1:gold: no class 'gold': one of shared, exclusive, whole"),
        (("release=web",), "release=web: nothing is reserved for 'web' by then: ask first"),
        (("--cpus", "0-9", "web=1"), "--cpus: no CPU 6-9 can be given here: there are 0-5"),
        (("--cpus", "", "web=1"), "--cpus: names no CPU: give a list such as 0-3,8"),
        (("--cpus", "x", "web=1"), "--cpus: 'x' is neither a CPU number nor a range such as 0-3"),
        (("--apart", "0-5", "web=1"), "--apart: leaves no CPU to give: name fewer"),
        (
            ("--machine", "0x1x1", "web=1"),
            "--machine: 0x1x1: is not SOCKETSxCORESxTHREADS with at most 8192 CPUs: write 2x6x2",
        ),
    ],
)
def test_what_cannot_be_read_is_one_line(arguments: tuple[str, ...], line: str) -> None:
    assert said(*arguments) == (2, line)


def test_without_what_if_nothing_happens_yet() -> None:
    done = CliRunner().invoke(commands, ["reserve", "web=1"])
    assert isinstance(done.exception, Refusal)
    assert done.exception.lines == (
        "dasec reserve: only shows: add --what-if; the daemon keeps what its configuration reserves",
    )
