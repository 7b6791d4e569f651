"""The guard on this kernel: its windows reach the threads, and undo what the policy did. No timing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dasec.errors import ExitStatus

from ..unit.service.command import configuration, dasec
from .daemons import knobs

pytestmark = pytest.mark.host

SETTINGS = (
    'period_ms = 20\npolicy = "dasec"\n[host]\nown_cgroups = true\nweights = "on"\n[guard]\nenabled = {}\n'
)
TRIED_FOR_SURE = "60"


def ran(tmp_path: Path, pid: int, guarded: str) -> list[dict[str, object]]:
    """The periods of a run, from its record, which replays."""
    config = configuration(tmp_path, SETTINGS.format(guarded), f"pids = [{pid}]")
    record = tmp_path / "r"
    done = dasec(
        *("run", "--config", config, "--periods", TRIED_FOR_SURE),
        *("--record", record, "--directory", tmp_path / "state"),
    )
    assert done.status == ExitStatus.DONE, done.errors
    assert dasec("replay", record).status == ExitStatus.DONE
    return [json.loads(line) for line in record.read_bytes().splitlines()[1:]]


def applied(lines: list[dict[str, object]]) -> set[str]:
    """The rules of all writes that the kernel took."""
    return {
        row[4]
        for line in lines
        for row in line.get("results", ())  # type: ignore[attr-defined]
        if row[5] == "applied"
    }


def test_a_busy_process_is_tried_with_real_writes_and_left_as_it_was(tmp_path: Path, busy: list[int]) -> None:
    before = knobs(busy)
    lines = ran(tmp_path, busy[0], "true")
    assert {"rla.start", "guard.without"} <= applied(lines)
    states = [line["decision"].get("state", {}) for line in lines]  # type: ignore[attr-defined]
    assert any(state.get("window", -1) >= 1 for state in states)
    assert any(standing[0] == "a" for state in states for standing in state.get("standings", ()))
    assert knobs(busy) == before


def test_without_a_guard_there_are_no_windows(tmp_path: Path, busy: list[int]) -> None:
    assert not {rule for rule in applied(ran(tmp_path, busy[0], "false")) if rule.startswith("guard.")}
