"""A start time that comes when everything is ready, and matrixmul, which is told the same way."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest

from guests.waiting import PATIENCE_S

from .tool import Node, Tool, read_uint64

SHORT = ("--seconds", "0.2", "--warmup", "0.1", "--start-on-stdin")


def told(tool: Tool, line: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [tool.path, *arguments],
        input=line,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def test_the_start_is_what_the_line_says(tool: Tool, tmp_path: Path) -> None:
    out, ready = tmp_path / "out", tmp_path / "ready"
    start_ns = time.monotonic_ns() + 1_000_000_000
    done = told(
        tool, f"{start_ns}\n", "service", *SHORT, "--out", str(out), "--ready", str(ready), "--rate", "500"
    )
    assert done.returncode == 0, done.stderr
    result = Node(json.loads(out.read_text()))
    assert result["start_at_ns"].integer() == start_ns
    assert result["completed"].integer() == result["arrivals_scheduled"].integer() > 0


def test_arrivals_do_not_depend_on_how_the_start_is_told(tool: Tool, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    told(tool, f"{time.monotonic_ns() + 10**9}\n", "service", *SHORT, "--arrivals", str(one))
    tool.run("service", *SHORT[:-1], "--arrivals", str(two))
    assert read_uint64(one) == read_uint64(two) != []


@pytest.mark.parametrize("subcommand", ["service", "matrixmul"])
@pytest.mark.parametrize("line", ["", "now\n", "0\n"])
def test_no_time_on_standard_input_is_one_clear_line(tool: Tool, subcommand: str, line: str) -> None:
    done = told(tool, line, subcommand, *SHORT)
    assert done.returncode == 1
    assert done.stderr == "dasec-load: --start-on-stdin: standard input has no time of the start\n"


def test_the_start_comes_one_way_only(tool: Tool) -> None:
    done = told(tool, "", "service", *SHORT, "--start-at-ns", "5")
    assert done.returncode == 2
    assert done.stderr == "dasec-load: --start-on-stdin: cannot be combined with --start-at-ns\n"


@pytest.mark.parametrize(("threads", "size"), [(1, 1), (2, 64), (3, 100), (7, 3)])
def test_products_are_right_however_the_rows_are_shared(tool: Tool, threads: int, size: int) -> None:
    """main checks every one of them by its sum."""
    result = tool.run(
        *("matrixmul", "--seconds", "0.1", "--warmup", "0"),
        *("--threads", str(threads), "--size", str(size)),
    )
    assert result["iterations"].integer() > 0
    assert result["cpu"]["total_s"].number() > 0


def test_matrixmul_has_a_main_thread_and_its_workers(tool: Tool) -> None:
    run = tool.start("matrixmul", "--seconds", "50", "--threads", "2")
    try:
        assert run.ready["threads"].names() == ["main", "worker-0", "worker-1"]
        result = run.terminate()
    finally:
        run.kill()
    assert result["interrupted"].value is True
