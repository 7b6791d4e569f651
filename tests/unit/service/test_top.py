"""`dasec top` in a real terminal of 80 columns and as plain text; its numbers are those of the record."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dasec.commands.top import RECENT_NS, Recent
from dasec.model import Change, Decision, Knob, Limits, Outcome, Reason, Result, ThreadState, Usage, VcpuId
from dasec.record.entries import Entry
from dasec.record.tail import RecordTail
from guests.waiting import wait_for
from tests.conftest import refuse

from .command import dasec
from .periods import STATE, busy_history
from .recording import recorded

COLUMNS, LINES = 80, 24


class Terminal:
    """A terminal of its own (tmux), and what stands on it."""

    def __init__(self, socket: Path) -> None:
        self._tmux = ["tmux", "-f", "/dev/null", "-S", str(socket)]
        self._status = socket.with_suffix(".status")

    def run(self, *command: str) -> None:
        """By a shell that keeps the exit status: on a busy machine tmux 3.3 now and then does not collect its
        child."""
        size = ["-x", str(COLUMNS), "-y", str(LINES)]
        script = 'trap : INT; status=$1; shift; "$@"; echo $? >"$status"; sleep infinity'
        self._call("new-session", "-d", *size, "sh", "-c", script, "sh", str(self._status), *command)

    def screen_with(self, *words: str) -> list[str]:
        """What stands on it as soon as all of them do: before, it may be half drawn."""
        seen: list[str] = []

        def shows() -> bool:
            seen[:] = self._call("capture-pane", "-p").splitlines()
            return all(any(word in line for line in seen) for word in words)

        wait_for(shows)
        return seen

    def press(self, key: str) -> None:
        self._call("send-keys", key)

    def ended_with(self) -> str:
        """The command's exit status; empty while it runs."""
        return self._status.read_text(encoding="ascii").strip() if self._status.exists() else ""

    def close(self) -> None:
        subprocess.run([*self._tmux, "kill-server"], check=False, capture_output=True)

    def _call(self, *arguments: str) -> str:
        done = subprocess.run([*self._tmux, *arguments], check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    if shutil.which("tmux") is None:
        refuse("needs tmux")
    opened = Terminal(tmp_path / "tmux")
    try:
        yield opened
    finally:
        opened.close()


def changed(entries: list[Entry]) -> list[Entry]:
    """The same periods, with a write for the first vCPU in the first one."""
    first, *rest = entries
    vcpu = first.period.workloads[0].vcpus[0].id
    result = Result(Change(vcpu, Knob.WEIGHT, 1024, 1126, "tsa.raise"), Outcome.APPLIED)
    return [
        first._replace(
            results=(result,), decision=Decision({}, (Reason(vcpu, Knob.WEIGHT, "tsa.raise"),), STATE)
        ),
        *rest,
    ]


def test_it_fills_80_columns_and_no_more_follows_the_record_and_ends_at_ctrl_c(
    tmp_path: Path, terminal: Terminal
) -> None:
    entries = changed(busy_history(40))
    recorded(tmp_path / "r", entries[:20])
    terminal.run(sys.executable, "-m", "dasec", "top", "--record", str(tmp_path / "r"), "--interval", "0.1")
    screen = terminal.screen_with("period 19", "last change", "tsa.raise")
    assert all(len(line) <= COLUMNS for line in screen)
    (head,) = [line for line in screen if "last change" in line]
    assert " ".join(head.split()) == "vCPU run % ready % wait ms weight latency CPUs last change"
    (line,) = [line for line in screen if "v100 100" in line]
    assert line.split()[-4:] == ["ms", "0-1", "tsa.raise", "2s"]
    recorded(tmp_path / "r", entries)
    terminal.screen_with("period 39")
    terminal.press("C-c")
    wait_for(lambda: terminal.ended_with() == "0")


def test_more_vcpus_than_lines_are_counted_in_the_last_line(tmp_path: Path, terminal: Terminal) -> None:
    (entry,) = busy_history(1)
    first, _ = entry.period.workloads
    vcpus = tuple(first.vcpus[0]._replace(id=VcpuId(1, tid, 1)) for tid in range(1, 46))
    many = replace(entry.period, workloads=(replace(first, vcpus=vcpus),), usage={}, knobs={}, core_of={})
    recorded(tmp_path / "r", [entry._replace(period=many)])
    terminal.run(sys.executable, "-m", "dasec", "top", "--record", str(tmp_path / "r"))
    terminal.screen_with("… 27 more")


def test_without_a_terminal_it_is_printed_once(tmp_path: Path) -> None:
    recorded(tmp_path / "r", changed(busy_history(3)))
    answer = dasec("top", "--record", tmp_path / "r")
    assert answer.status == 0
    assert sum("last change" in line for line in answer.out.splitlines()) == 1
    assert sorted(line.split()[0] for line in answer.out.splitlines()[3:]) == sorted(
        ["hungry", "calm", *(f"v{number}" for number in (100, 101, 102, 103, 200, 201, 202, 203))]
    )


def test_in_a_terminal_that_cannot_move_its_cursor_it_is_printed_once(
    tmp_path: Path, terminal: Terminal
) -> None:
    recorded(tmp_path / "r", changed(busy_history(3)))
    dumb = ("env", "TERM=dumb", sys.executable)
    terminal.run(*dumb, "-m", "dasec", "top", "--record", str(tmp_path / "r"))
    terminal.screen_with("period 2", "last change", "tsa.raise")
    wait_for(lambda: terminal.ended_with() == "0")


def test_without_a_record_there_is_one_line(tmp_path: Path) -> None:
    answer = dasec("top", "--directory", tmp_path)
    assert answer.status == 1
    (line,) = answer.errors
    assert line.endswith("or name a record with --record FILE")


def test_percentages_are_of_the_last_two_seconds_and_who_waits_most_comes_first(tmp_path: Path) -> None:
    entries = busy_history(100)
    workload = entries[0].period.workloads[0]
    waiting = workload.vcpus[2].id
    used = {waiting: Usage(20_000_000, 40_000_000, 10, ThreadState.READY, 0)}
    calm = [entry._replace(period=replace(entry.period, usage={})) for entry in entries[:60]]
    late = [entry._replace(period=replace(entry.period, usage=used)) for entry in entries[60:]]
    recorded(tmp_path / "r", [*calm, *late])
    recent = Recent(RecordTail(tmp_path / "r"))
    assert recent.look().period == late[-1].period
    assert RECENT_NS < 40 * 80_000_000
    first, *others = recent.rows(workload)
    assert first[:4] == (f"v{waiting.tid} {waiting.tid}", 25.0, 50.0, 4.0)
    assert {row.ready_percent for row in others} == {0.0}


def test_the_line_of_a_workload_says_for_how_long_its_limit_stopped_threads(tmp_path: Path) -> None:
    entries = [
        entry._replace(
            period=replace(entry.period, limits={"hungry": Limits(2_000_000, 0, 10_000_000 * at, {})})
        )
        for at, entry in enumerate(busy_history(4))
    ]
    recorded(tmp_path / "r", entries)
    said = {line.split()[0]: line for line in dasec("top", "--record", tmp_path / "r").out.splitlines()[3:]}
    assert "stop %" in dasec("top", "--record", tmp_path / "r").out
    # 60 of 320 ms
    assert "throttled 18.8 %" in said["hungry"]
    assert "throttled" not in said["calm"]
