"""The real demo, short: its structure, and that nothing of it is left, however it ends. No timing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from dasec.errors import Refusal
from dasec.lab.demo.situations import situations_for
from dasec.lab.kit import run as kit_run
from dasec.lab.kit.arms import CONTROL, NONE, arms_for, schedule
from dasec.lab.kit.bench import RunPlan
from dasec.lab.kit.blocks import RunProgress, measure_all
from dasec.lab.kit.layout import GroupLayout
from dasec.lab.kit.scenario import Timing
from dasec.lab.kit.tree import Tree
from dasec.lab.kit.workspace import DIRECTORY, lock_file, prepared
from dasec.lab.load_tool import merged
from dasec.linux.cgroupfs import find_hierarchy

POLICIES = ("dasec",)
REPETITIONS = 2
SHORT = ["--seconds", "0.5", "--warmup", "0.3", "--repetitions", str(REPETITIONS)]
SITUATIONS = 3
START_PATIENCE_S = 60.0
CLEAN_PATIENCE_S = 120.0


AS_NOBODY = """\
import os, dasec.lab.demo.command, dasec.lab.kit.needs
from dasec.commands.cli import main
os.setuid(65534)
main(["demo"])
"""
"""Imports first: this Python may lie where only root can read."""


def dasec(*arguments: str, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "dasec", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def eventually(condition: Callable[[], bool], patience_s: float) -> bool:
    deadline = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def left_over() -> list[str]:
    """Everything of a demo that can be on a host: groups, processes, files."""
    tree = Tree.of(find_hierarchy())
    groups = [str(tree.top)] if tree.top.exists() else []
    files = [str(path) for path in (DIRECTORY, lock_file(DIRECTORY)) if path.exists()]
    return groups + files + [line for line in command_lines() if str(DIRECTORY) in line]


def command_lines() -> Iterator[str]:
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield process.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue


def daemon_runs() -> bool:
    """The middle of a policy's run: the daemon has knobs, the workloads have load."""
    return any(DIRECTORY.glob("*/state/status.json"))


def seed_that_begins_with(arm: str) -> int:
    """So that nobody waits for other arms' runs."""
    arms = arms_for([arm])
    return next(seed for seed in count() if schedule(arms, REPETITIONS, seed)[0][0] == arm)


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A demo in the middle of a policy's run."""
    arguments = ["--policies", "dasec", "--seconds", "6", "--repetitions", "2", "--layout", "vm"]
    arguments += ["--seed", str(seed_that_begins_with("dasec"))]
    process = dasec("demo", *arguments, folder=tmp_path)
    try:
        assert eventually(lambda: daemon_runs() or process.poll() is not None, 3 * START_PATIENCE_S)
        if process.poll() is not None:
            pytest.fail(f"the demo ended early: {process.communicate()}")
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        process.communicate()


@pytest.mark.alone  # it compares all of the host: tests beside it set policies of their own threads
@pytest.mark.host
@pytest.mark.thorough
def test_a_short_demo_measures_every_arm_and_leaves_nothing(tmp_path: Path) -> None:
    files = ["--json", "d.json", "--records", "records"]
    process = dasec("demo", *SHORT, "--policies", ",".join(POLICIES), *files, folder=tmp_path)
    output, errors = process.communicate()
    assert (process.returncode, errors) == (0, ""), output
    assert "host exactly as before: verified" in output
    assert (tmp_path / "results" / "demo.png").stat().st_size > 20_000
    content = json.loads((tmp_path / "d.json").read_text())
    arms = [NONE, CONTROL, *POLICIES]
    assert len(content["situations"]) == SITUATIONS
    for situation in content["situations"]:
        assert situation["arms"] == arms
        assert sorted((run["arm"], run["repetition"]) for run in situation["runs"]) == sorted(
            (arm, repetition) for arm in arms for repetition in range(REPETITIONS)
        )
        check_runs(situation["runs"])
    assert {line["answer"] for line in content["lines"]} == {"cannot tell"}
    assert "This host cannot tell:" in " ".join(output.split())
    assert content["host"]["kernel"] == os.uname().release
    assert content["changed"] == []
    assert left_over() == []
    records = sorted((tmp_path / "records").glob("*/*"))
    assert len(records) == SITUATIONS * len(POLICIES) * REPETITIONS
    assert dasec("replay", str(records[0]), folder=tmp_path).wait() == 0
    assert dasec("verify", folder=tmp_path).wait() == 0


def check_runs(runs: list[dict[str, object]]) -> None:
    # Its budget may keep a daemon from looking at all within half a second, not within every one of them.
    assert {run["arm"] for run in runs if run["daemon_cpu_s"] != 0} <= set(POLICIES)
    assert any(run["daemon_cpu_s"] for run in runs)
    for run in runs:
        policy_runs = run["arm"] in POLICIES
        decided, tenants = run["decided"], run["tenants"]
        assert bool(decided) == policy_runs
        assert isinstance(tenants, list)
        for tenant in tenants:
            assert merged([tenant["latencies"]["hdr"]]).count == tenant["latencies"]["count"] > 0
            assert tenant["cores"] > 0


@pytest.mark.host
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_leaves_nothing(demo: subprocess.Popen[str], number: signal.Signals) -> None:
    demo.send_signal(number)
    _, errors = demo.communicate(timeout=CLEAN_PATIENCE_S)
    assert demo.returncode == 1
    assert errors == "dasec: demo: interrupted: everything it had started is gone\n"
    assert left_over() == []


@pytest.mark.host
def test_a_killed_demo_leaves_nothing_either(demo: subprocess.Popen[str]) -> None:
    demo.kill()
    demo.communicate()
    assert eventually(lambda: left_over() == [], CLEAN_PATIENCE_S), left_over()


@pytest.mark.host
def test_a_workload_that_dies_ends_the_demo_in_one_line_and_leaves_nothing(
    demo: subprocess.Popen[str],
) -> None:
    tree = Tree.of(find_hierarchy())
    for pid in tree.processes("machine/server-0"):
        os.kill(pid, signal.SIGKILL)
    _, errors = demo.communicate(timeout=2 * START_PATIENCE_S)
    assert demo.returncode == 1
    assert errors == "dasec: demo: server-0: ended early, exit status -9: no message\n"
    assert left_over() == []


@pytest.mark.host
def test_loads_that_are_always_told_too_late_say_so_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kit_run, "BEGINS_S", (-0.5, -0.4))
    tree = Tree.of(find_hierarchy())
    timing = Timing(seconds=1.0, lead_s=0.0)
    plan = RunPlan(situations_for(2)[0].scenario, GroupLayout.VM, timing, arms_for([]), 2, 1)
    idle = RunProgress(
        begin=lambda number, arm, repetition: None, tick=lambda: None, keep=lambda number, runs: None
    )
    with pytest.raises(Refusal, match="not told within"), prepared(tree, tmp_path / "demo") as directory:
        measure_all([plan], tree, directory, idle)
    assert left_over() == []


@pytest.mark.host
def test_without_root_there_is_one_line_that_says_what_still_works() -> None:
    refused = subprocess.run(
        [sys.executable, "-c", AS_NOBODY],
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 3
    assert refused.stderr.count("\n") == 1
    assert "run it as root" in refused.stderr
    assert "--dry-run" in refused.stderr


@pytest.mark.host
def test_a_demo_of_no_policy_is_no_demo(tmp_path: Path) -> None:
    for policies in ("", ",", "none"):
        process = dasec("demo", "--policies", policies, folder=tmp_path)
        _, errors = process.communicate(timeout=CLEAN_PATIENCE_S)
        why = "names nothing beside the plain host: give some, such as critical"
        assert (process.returncode, errors) == (2, f"dasec: demo: --policies: {policies!r}: {why}\n")


@pytest.mark.host
def test_without_the_load_tool_there_is_one_line_that_says_so(tmp_path: Path) -> None:
    refused = subprocess.run(
        [sys.executable, "-m", "dasec", "demo"],
        cwd=tmp_path,
        env={**os.environ, "DASEC_LOAD": str(tmp_path / "load")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (refused.returncode, refused.stdout) == (3, "")
    assert refused.stderr == f"dasec: demo: DASEC_LOAD: {tmp_path / 'load'}: is not an executable file\n"
