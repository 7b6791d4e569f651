"""Every command of experiments starts, every file is right, and mistakes are one line each."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from dasec.errors import ExitStatus, Refusal
from experiments.command import command

ROOT = Path(__file__).resolve().parents[3]
MODULES = sorted(
    ["experiments", "experiments.drivers"]
    + [f"experiments.studies.{file.parent.name}" for file in ROOT.glob("experiments/studies/*/__main__.py")]
)
SCRIPTS = sorted(
    str(file.relative_to(ROOT))
    for file in ROOT.glob("experiments/studies/*/run.py")
    if "__main__" in file.read_text(encoding="utf-8")
)
OTHERS = {ROOT / "experiments/studies/bandwidth/figures.toml"}
"""What a study's own command reads (experiments/README.md)."""

FILES = sorted(set(ROOT.glob("experiments/studies/**/*.toml")) - OTHERS)


@pytest.mark.parametrize(
    "started", [*(["-m", name] for name in MODULES), *([name] for name in SCRIPTS)], ids=" ".join
)
def test_the_command_says_how_it_is_used(started: list[str]) -> None:
    command = [sys.executable, *started, "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Usage: ")


@pytest.mark.parametrize("file", FILES, ids=lambda file: "/".join(file.parts[-2:]))
def test_every_file_is_right_and_check_says_how_long_it_takes(file: Path) -> None:
    done = CliRunner().invoke(command, ["check", str(file)])
    assert not isinstance(done.exception, Refusal) or done.exception.status is ExitStatus.HOST, done.exception
    assert "about" in done.output or isinstance(done.exception, Refusal)


def minutes_said(file: str, *more: str) -> float:
    done = CliRunner().invoke(command, ["check", str(ROOT / "experiments/studies" / file), *more])
    return float(done.output.split("about ")[1].split(" min")[0])


def test_one_guest_is_not_said_to_be_faster_on_two_cores_and_java_takes_longer_than_memcached() -> None:
    memcached, java = "servers/memcached-busy.toml", "servers/java-busy.toml"
    assert minutes_said(memcached) == minutes_said(memcached, "--guests", "1")
    assert minutes_said(java) > 3 * minutes_said(memcached)


def refused(arguments: list[str]) -> Refusal:
    done = CliRunner().invoke(command, arguments)
    assert isinstance(done.exception, Refusal), done.output
    return done.exception


USUAL = str(ROOT / "experiments/studies/loads/usual.toml")


@pytest.mark.parametrize(
    ("setting", "line"),
    [
        ('loads=["nosuch"]', "loads[0]: nosuch is unknown: known are fanout, "),
        ("ratios=[0]", "ratios[0]: Input should be greater than 0"),
        ('utilisations=["x"]', "utilisations[0]: Input should be a valid number"),
        ('layouts=["nested"]', "layouts[0]: Input should be 'vm', 'flat' or 'shared'"),
        ('policies=["dasek"]', "policies[0]: dasek is unknown: known are "),
        ("nosuch=1", "nosuch: Unexpected keyword argument"),
        ("place=counted", "cpus is missing: a guest has as many as the file says"),
        ("kernel=2.6", "kernel: 2.6 is unknown: known are "),
        ('policies=["scx+guard"]', "policies: scx+guard: policy: no policy named 'scx'"),
        ('policies=["none-again+guard"]', "policies: none-again+guard: policy: no policy named 'none-again'"),
        ('policies=["no-limit+caps"]', "policies: no-limit+caps: policy: no policy named 'no-limit+caps'"),
        ("repetitions=true", "repetitions: Input should be a valid integer"),
        ('seconds="5"', "seconds: Input should be a valid number"),
        ("ratios=[true]", "ratios[0]: Input should be a valid number"),
        ("records=1", "records: Input should be a valid boolean"),
        ("seconds=nan", "seconds: Input should be less than or equal to 3600"),
        ("repetitions=1000000000", "repetitions: Input should be less than or equal to 1000"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(setting: str, line: str) -> None:
    loads = ["--set", 'loads=["idle"]', "--set", "ratios=[4]", "--set", "utilisations=[0.5]"]
    place = ["--set", "place=testbed", "--set", "cpus=2"] if setting.startswith("kernel") else []
    found = refused(["check", USUAL, *loads, *place, "--set", setting])
    assert (found.status, len(found.lines)) == (ExitStatus.USAGE, 1)
    assert found.lines[0].startswith(f"{USUAL}: {line}"), found.lines


@pytest.mark.parametrize(
    ("file", "setting", "line"),
    [
        ("testbed/quick.toml", "ratios=[1e9]", "ratios[0]: Input should be less than or equal to 1000"),
        ("bare/quick.toml", "seed=true", "seed: Input should be a valid integer"),
        ("vms/ratios.toml", "repetitions=2.0", "repetitions: Input should be a valid integer"),
        ("apps/quick.toml", "repetitions=true", "repetitions: is true, which is wrong"),
    ],
)
def test_a_value_of_another_type_or_beyond_all_machines_is_one_line(
    file: str, setting: str, line: str
) -> None:
    path = str(ROOT / "experiments/studies" / file)
    found = refused(["check", path, "--set", setting])
    assert (found.status, len(found.lines)) == (ExitStatus.USAGE, 1)
    assert found.lines[0].startswith(f"{path}: {line}"), found.lines


def test_a_file_without_loads_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "empty.toml"
    file.write_text('title = "nothing"\n', encoding="utf-8")
    assert refused(["run", str(file)]).lines == (
        f"{file}: has no loads: give one of the keys mix, server, workload, loads, contests, host, bare, vms",
    )


@pytest.mark.parametrize("setting", ["=", "ratios", 'a="'])
def test_a_setting_that_is_none_is_one_line(setting: str) -> None:
    found = refused(["check", USUAL, "--set", setting])
    assert (found.status, len(found.lines)) == (ExitStatus.USAGE, 1)


def test_a_folder_without_results_is_one_line(tmp_path: Path) -> None:
    for arguments in (["report", str(tmp_path)], ["compare", str(tmp_path), str(tmp_path)]):
        assert refused(arguments).lines == (f"{tmp_path}: has no asked.json: give a folder of results",)


def test_the_kept_runs_of_the_loads_were_asked_for_by_files_that_are_there() -> None:
    for name, results in (("modes", "fairness"), ("guarded", "guarded"), ("no-gain", "no-gain")):
        asked = (ROOT / f"experiments/studies/loads/results/{results}/asked.json").read_text(encoding="utf-8")
        told = tomllib.loads((ROOT / f"experiments/studies/loads/{name}.toml").read_text(encoding="utf-8"))
        found = json.loads(asked)["wish"]
        assert {key: found[key] for key in told if key != "title"} == {
            key: value for key, value in told.items() if key != "title"
        }
