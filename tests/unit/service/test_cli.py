"""`dasec` as its user meets it: every mistake is one line on stderr and the right exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from dasec.errors import ExitStatus
from guests.waiting import wait_for

from .command import FAKE, configuration, dasec


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["fly"], "dasec: No such command 'fly'. See `dasec --help`."),
        (["run"], "dasec: Missing option '--config'. See `dasec run --help`."),
        (["run", "--config", "x", "--periods", "0"], "dasec: Invalid value for '--periods'"),
        (["run", "--config", "x", "--perods", "1"], "dasec: No such option '--perods'"),
        (["classify", "-h", "--wrong"], "dasec: No such option '--wrong'"),
        (["top", "--interval", "nan"], "dasec: Invalid value for '--interval': nan is not in the range"),
        (["replay"], "dasec: Missing argument 'FILE'."),
        (["run", "--config", "/nowhere/c.toml"], "dasec: /nowhere/c.toml: No such file or directory: give"),
        (["run", "--config", "/"], "dasec: /: Is a directory: give a readable file"),
        (["replay", "/nowhere/r"], "dasec: /nowhere/r: No such file or directory: give a readable record"),
        (["bench", "overhead", "--vcpus", "1"], "dasec: Invalid value for '--vcpus'"),
        (["bench", "overhead", "--sweep", "16,x"], "dasec: --sweep: '16,x': give numbers from"),
        (["bench", "overhead", "--sweep", ""], "dasec: --sweep: '': give numbers from"),
        (
            ["classify", "--cpus", "0.5", "--", "/nowhere/x", "-v"],
            "dasec: classify: /nowhere/x: is no program",
        ),
        (["classify", "--cpus", "0.5", "no-such-program"], "dasec: classify: no-such-program: is no program"),
        (
            ["classify", "--cpus", "0.5", "/dev/null"],
            "dasec: classify: /dev/null: is no program that",
        ),
        (["restore", "--directory", ""], "dasec: Invalid value for '--directory': it is empty: name a"),
        (
            ["verify", "--directory", "/dev/null"],
            "dasec: Invalid value for '--directory': '/dev/null' is not",
        ),
        (
            ["restore", "--directory", "/dev/null/x"],
            "dasec: Invalid value for '--directory': '/dev/null/x' i",
        ),
    ],
)
def test_wrong_usage_is_one_line_and_status_2(arguments: list[str], line: str) -> None:
    answer = dasec(*arguments)
    assert answer.status == ExitStatus.USAGE
    assert len(answer.errors) == 1
    assert answer.errors[0].startswith(line)


def test_cpus_that_this_machine_cannot_have_are_refused_and_beside_others_said(tmp_path: Path) -> None:
    for cpus, status in (("8000", ExitStatus.USAGE), ("0,8000", ExitStatus.DONE)):
        config = configuration(tmp_path, f'[host]\ncpus = "{cpus}"\nbpf = false\n', "pids = [1]")
        ran = dasec("run", "--config", config, "--dry-run", "--periods", "1")
        assert ran.status == status
        assert [line for line in ran.errors if "host.cpus: no CPU 8000 can be here" in line] == ran.errors[:1]


def test_every_error_of_a_configuration_has_its_line(tmp_path: Path) -> None:
    config = configuration(tmp_path, "perod_ms = 1\npolicy = 'x'\n", "pids = [1]\nshare = 0")
    answer = dasec("run", "--config", config)
    assert answer.status == ExitStatus.USAGE
    assert len(answer.errors) == 3
    assert all(line.startswith(f"dasec: {config}: ") for line in answer.errors)


def test_a_file_that_is_no_toml_is_one_line(tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    config.write_text("period_ms = = 3\n")
    answer = dasec("run", "--config", config)
    assert (answer.status, len(answer.errors)) == (ExitStatus.USAGE, 1)


def test_version_and_help_are_there_and_quick_to_load() -> None:
    assert dasec("--version").out == f"dasec {version('dasec')}\n"
    program = "import sys, dasec.commands.cli; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    names = {name.split(".")[0] for name in loaded.stdout.split()}
    assert not names & {"pydantic", "pydantic_core", "rich", "matplotlib", "numpy", "scipy"}


def test_the_daemon_does_not_load_what_only_the_demo_needs() -> None:
    program = "import sys, dasec.service; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    names = {name.split(".")[0] for name in loaded.stdout.split()}
    assert not names & {"rich", "matplotlib", "numpy", "scipy", "hdrh"}


@pytest.mark.parametrize(
    "command", ["run", "probe", "status", "verify", "restore", "replay", "bench overhead", "demo"]
)
def test_every_command_has_help(command: str) -> None:
    answer = dasec(*command.split(), "--help")
    assert (answer.status, answer.errors) == (ExitStatus.DONE, [])
    assert f"Usage: dasec {command} " in answer.out


def test_without_a_daemon_status_says_so(tmp_path: Path) -> None:
    answer = dasec("status", "--directory", tmp_path)
    assert answer.status == ExitStatus.FAILED
    assert answer.errors == [
        f"dasec: no daemon runs: {tmp_path}/status.json does not exist:"
        " start one with `dasec run --config FILE`"
    ]
    assert json.loads(dasec("status", "--json", "--directory", tmp_path).out)["running"] is False


def test_run_on_the_fake_host_records_what_replays(tmp_path: Path) -> None:
    config = configuration(tmp_path, "period_ms = 10\n" + FAKE)
    ran = dasec("run", "--config", config, "--periods", "20", "--record", tmp_path / "r")
    assert ran.status == ExitStatus.DONE
    assert ran.errors == ["dasec: policy critical on fake, every 10 ms, guarded", *ran.errors[1:]]
    replayed = dasec("replay", tmp_path / "r")
    assert (replayed.status, replayed.errors) == (ExitStatus.DONE, [])
    assert ": 20 periods, " in replayed.out


@pytest.mark.parametrize(
    "content",
    [b"root:x:0:0\n", b"root", b"", b'{"a": 1}\n{"b": 2}\n', b"\x00\xff\n", None],
    ids=["text", "unended text", "nothing", "other JSON", "bytes", "directory"],
)
@pytest.mark.parametrize("command", [["replay"], ["explain", "web", "--record"], ["top", "--record"]])
def test_what_is_no_record_is_wrong_usage_in_one_line_of_whoever_reads_records(
    tmp_path: Path, command: list[str], content: bytes | None
) -> None:
    file = tmp_path / "r"
    if content is None:
        file.mkdir()
    else:
        file.write_bytes(content)
    answer = dasec(*command, file)
    assert (answer.status, len(answer.errors), answer.out) == (ExitStatus.USAGE, 1, "")
    assert str(file) in answer.errors[0]


def test_a_changed_byte_makes_replay_fail_with_its_line(tmp_path: Path) -> None:
    config = configuration(tmp_path, "period_ms = 10\n" + FAKE)
    dasec("run", "--config", config, "--periods", "5", "--record", tmp_path / "r")
    lines = (tmp_path / "r").read_bytes().split(b"\n")
    at = lines[3].index(b'"decision"') + 3
    lines[3] = lines[3][:at] + b"X" + lines[3][at + 1 :]
    (tmp_path / "r").write_bytes(b"\n".join(lines))
    answer = dasec("replay", tmp_path / "r")
    assert answer.status == ExitStatus.FAILED
    assert len(answer.errors) == 1
    assert answer.errors[0].startswith(f"dasec: {tmp_path}/r:4: its checksum is wrong")


def test_a_record_cut_short_replays_with_a_notice(tmp_path: Path) -> None:
    config = configuration(tmp_path, "period_ms = 10\n" + FAKE)
    dasec("run", "--config", config, "--periods", "5", "--record", tmp_path / "r")
    (tmp_path / "r").write_bytes((tmp_path / "r").read_bytes()[:-9])
    answer = dasec("replay", tmp_path / "r")
    assert answer.status == ExitStatus.DONE
    assert len(answer.errors) == 1
    assert "is cut short" in answer.errors[0]


def test_a_file_of_somebody_else_is_never_recorded_to(tmp_path: Path) -> None:
    config = configuration(tmp_path, FAKE)
    (tmp_path / "precious").write_text("mine\n")
    answer = dasec("run", "--config", config, "--periods", "1", "--record", tmp_path / "precious")
    assert (answer.status, len(answer.errors)) == (ExitStatus.USAGE, 1)
    assert (tmp_path / "precious").read_text() == "mine\n"


def test_a_full_disk_under_the_record_is_one_line_and_the_daemon_runs_on(tmp_path: Path) -> None:
    config = configuration(tmp_path, "period_ms = 10\n" + FAKE)
    answer = dasec("run", "--config", config, "--periods", "10", "--record", "/dev/full")
    assert answer.status == ExitStatus.DONE
    told = [line for line in answer.errors if "/dev/full" in line]
    assert told == [
        "dasec: record /dev/full: No space left on device: running on without a record,"
        " trying again every 10 s"
    ]


def test_a_pid_that_does_not_exist_is_one_notice_and_the_daemon_runs_on(tmp_path: Path) -> None:
    config = configuration(tmp_path, "period_ms = 10\n" + FAKE, "pids = [4194304]")
    answer = dasec("run", "--config", config, "--periods", "10")
    assert answer.status == ExitStatus.DONE
    assert answer.errors.count("dasec: workload a matches no thread at present") == 1


def test_a_process_that_ends_is_one_notice_and_the_daemon_runs_on(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        config = configuration(tmp_path, "period_ms = 20\n" + FAKE, f"pids = [{sleeper.pid}]")
        command = [
            sys.executable,
            "-m",
            "dasec",
            "run",
            "--config",
            str(config),
            "--record",
            str(tmp_path / "r"),
        ]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as daemon:
            wait_for(lambda: (tmp_path / "r").exists())
            sleeper.kill()
            sleeper.wait()
            wait_for(lambda: b'"vcpus":[]' in (tmp_path / "r").read_bytes())
            daemon.terminate()
            _, errors = daemon.communicate()
    assert daemon.returncode == ExitStatus.DONE
    assert len([line for line in errors.splitlines() if "workload a" in line]) == 1


def test_a_cgroup_that_does_not_exist_is_one_notice_and_the_daemon_runs_on(tmp_path: Path) -> None:
    config = configuration(tmp_path, "period_ms = 10\n" + FAKE, 'cgroup = "/no/such.scope"')
    answer = dasec("run", "--config", config, "--periods", "10")
    assert answer.status == ExitStatus.DONE
    assert answer.errors.count("dasec: workload a matches no thread at present") == 1


def test_a_reader_who_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    command = f"{sys.executable} -m dasec --help | true"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_a_bug_is_a_traceback_and_status_1(tmp_path: Path) -> None:
    program = (
        "import sys, dasec.critical.rule as p\n"
        "def bug(self, period, state): raise ZeroDivisionError('bug')\n"
        "p.Critical.decide = bug\n"
        "from dasec.commands.cli import main\n"
        f"main(['run', '--periods', '3', '--config', {str(configuration(tmp_path, FAKE))!r}])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == ExitStatus.FAILED
    assert "Traceback" in done.stderr
    assert done.stderr.endswith("ZeroDivisionError: bug\n")


def test_a_dry_run_needs_no_directory(tmp_path: Path) -> None:
    config = configuration(tmp_path, "period_ms = 10\ndry_run = true\n")
    answer = dasec("run", "--config", config, "--periods", "3", "--directory", "/proc/none")
    assert answer.status == ExitStatus.DONE
    assert "(dry run: no knob is written)" in answer.errors[0]


def test_a_directory_that_cannot_be_made_is_one_line_and_status_3(tmp_path: Path) -> None:
    config = configuration(tmp_path)
    answer = dasec("run", "--config", config, "--periods", "1", "--directory", "/proc/none")
    assert answer.status == ExitStatus.HOST
    assert len(answer.errors) == 1
    assert "--dry-run" in answer.errors[0]
    assert os.path.basename(config) not in answer.errors[0]
