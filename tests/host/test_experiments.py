"""An experiment file with real applications, as short as it gets: structure, not timing."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dasec.errors import Refusal
from dasec.lab.kit.tree import Tree
from dasec.lab.kit.workspace import DIRECTORY, lock_file
from dasec.linux.cgroupfs import find_hierarchy
from experiments.command import command as experiments

BEGIN_PATIENCE_S = 240.0
CELL = "cache-and-batch-r2-vm"
BROKEN = """
[[mix]]
name = "broken"
[[mix.workload]]
driver = "memcached"
rate_per_s = 10
count = 2
options = { get-ratio = 7 }
"""


def command(repository: Path, folder: Path, file: Path) -> list[str]:
    assert repository.is_dir()
    return [sys.executable, "-m", "experiments", "run", str(file), "--out", str(folder)]


def smoke(repository: Path) -> Path:
    return repository / "experiments/studies/apps/smoke.toml"


def begun(folder: Path) -> list[dict[str, object]]:
    """The finished runs of the block that is not finished."""
    file = folder / "begun.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [json.loads(line)["run"] for line in lines]


def arrivals(folder: Path, arm: str) -> bytes:
    return (folder / "raw" / CELL / f"0-{arm}" / "memcached-0" / "arrivals").read_bytes()


@pytest.mark.thorough
@pytest.mark.host
def test_an_experiment_is_interrupted_and_goes_on_with_the_runs_that_are_missing(
    repository: Path, tmp_path: Path
) -> None:
    run = command(repository, tmp_path / "a", smoke(repository))
    first = subprocess.Popen(run, cwd=repository, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + BEGIN_PATIENCE_S
    while not begun(tmp_path / "a") and first.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    first.send_signal(signal.SIGINT)
    _, complaint = first.communicate(timeout=60)
    kept = begun(tmp_path / "a")
    assert (first.returncode, "interrupted: the host is as before" in complaint, len(kept)) == (1, True, 1)
    check_nothing_is_left()
    done = subprocess.run(run, cwd=repository, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (block,) = map(json.loads, (tmp_path / "a" / "runs.jsonl").read_text(encoding="utf-8").splitlines())
    assert block["interrupted"]
    assert kept[0] in block["runs"]
    arms = {run["arm"] for run in block["runs"]}
    assert arms == {"none", "none-again", "critical", "oracle"}
    check_nothing_is_left()
    check_report(tmp_path / "a")
    check_arrivals(repository, tmp_path, arms)


def check_arrivals(repository: Path, folder: Path, arms: set[str]) -> None:
    """The recorded arrival times: one schedule for all arms, and the same again for the same seed; where an
    application fails, the others are measured nevertheless."""
    (once,) = {arrivals(folder / "a", arm) for arm in arms}
    assert once
    shorter = folder / "plain.toml"
    text = smoke(repository).read_text(encoding="utf-8")
    shorter.write_text(text.replace('["critical", "oracle"]', "[]") + BROKEN, encoding="utf-8")
    again = command(repository, folder / "b", shorter)
    done = subprocess.run(again, cwd=repository, check=False, capture_output=True, text=True)
    assert arrivals(folder / "b", "none") == once
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("broken-r2-vm: failed: memcached-0: ")
    assert "<td>broken-r2-vm</td><td>failed: " in (folder / "b" / "report.html").read_text(encoding="utf-8")


def check_report(folder: Path) -> None:
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "<h2>Knobs at the end of a run</h2>" in page
    assert (folder / "raw" / CELL / "0-critical.jsonl").exists()
    for name in ("results.json", "runs.csv", "comparisons.csv"):
        assert (folder / name).stat().st_size > 100


def check_nothing_is_left() -> None:
    assert not DIRECTORY.exists()
    assert not lock_file(DIRECTORY).exists()
    assert not Tree.of(find_hierarchy()).top.exists()


@pytest.mark.parametrize(
    ("change", "status", "line"),
    [
        (("load = 10000", "load = 0.00001"), 3, "needs.load: a load average of 1e-05 at most, it is"),
        (("load = 10000", "cores = 4096"), 3, "needs.cores: 4096 cores, this host has"),
        (("ratios = [2]", "ratios = [-2]"), 2, "ratios[0]: is -2"),
    ],
)
def test_a_host_that_is_not_fit_and_a_wrong_file_are_one_line(
    repository: Path, tmp_path: Path, change: tuple[str, str], status: int, line: str
) -> None:
    file = tmp_path / "e.toml"
    file.write_text(smoke(repository).read_text(encoding="utf-8").replace(*change), encoding="utf-8")
    with pytest.raises(Refusal) as caught:
        experiments.main(["run", str(file), "--out", str(tmp_path / "out")], standalone_mode=False)
    complaints = [one for one in caught.value.lines if "needs.load: a load average of 0.5" not in one]
    assert (caught.value.status, len(complaints)) == (status, 1)
    assert line in complaints[0]
    assert not (tmp_path / "out").exists()
