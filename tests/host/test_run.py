"""`dasec run` on this kernel, as root and as nobody: recorded, replayed, and everything put back."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dasec.errors import ExitStatus
from dasec.linux import cgroupfs, schedattr
from dasec.safety.groups import PROBE_GROUP
from guests.waiting import PATIENCE_S, wait_for

from ..unit.service.command import as_nobody, configuration, dasec
from .daemons import BUSY, PAPER, PROBED, daemon, knobs, run

pytestmark = pytest.mark.host


@pytest.mark.parametrize("policy", ["dasec", "static"])
def test_fifty_periods_are_recorded_replay_and_leave_no_trace(
    policy: str, tmp_path: Path, busy: list[int]
) -> None:
    before = knobs(busy)
    config = configuration(tmp_path, f'policy = "{policy}"\n{PROBED}', f"pids = [{busy[0]}]")
    record, state = tmp_path / "r", tmp_path / "state"
    ran = dasec("run", "--config", config, "--periods", "50", "--record", record, "--directory", state)
    assert ran.status == ExitStatus.DONE, ran.errors
    assert knobs(busy) == before
    applied = [line for line in record.read_text().splitlines() if '"applied"' in line]
    assert applied, "nothing was decided in 50 periods of a busy process"
    replayed = dasec("replay", record)
    assert (replayed.status, replayed.errors) == (ExitStatus.DONE, [])
    assert dasec("verify", "--directory", state).status == ExitStatus.DONE

    content = record.read_bytes()
    at = content.index(b'"reasons":[[') + len(b'"reasons":[[')
    record.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    assert dasec("replay", record).status == ExitStatus.FAILED


def test_a_running_daemon_shows_its_status_and_stops_in_order(tmp_path: Path, busy: list[int]) -> None:
    before = knobs(busy)
    config = configuration(tmp_path, PAPER, f"pids = [{busy[0]}]")
    with daemon(tmp_path, config) as process:
        shown = json.loads(dasec("status", "--json", "--directory", tmp_path / "state").out)
        assert shown["running"]
        assert shown["pid"] == process.pid
        assert shown["workloads"] == [
            {
                "name": "a",
                "vcpus": 8,
                "share": shown["workloads"][0]["share"],
                "guard": shown["workloads"][0]["guard"],
                "left_out": 0,
                "unheard": 0,
                "limit_ppm": 0,
                "throttled_ms": 0,
                "used_up_by": [],
                "stopped_ms": [],
                "spared_ms": 0,
                "capped": 0,
                "reserved": "",
            }
        ]
        assert shown["knobs_held"]["rescheduling_latency"] > 0
        assert shown["changes_by_rule"]
        assert "policy dasec on mainline" in dasec("status", "--directory", tmp_path / "state").out
        assert knobs(busy) != before
        second = dasec("run", "--config", config, "--periods", "1", "--directory", tmp_path / "state")
        assert (second.status, len(second.errors)) == (ExitStatus.HOST, 1)
        process.terminate()
        _, errors = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == ExitStatus.DONE, errors
    assert knobs(busy) == before
    assert dasec("status", "--directory", tmp_path / "state").status == ExitStatus.FAILED


def test_a_stop_that_is_asked_for_again_and_again_is_in_order(tmp_path: Path, busy: list[int]) -> None:
    before = knobs(busy)
    config = configuration(tmp_path, PAPER, f"pids = [{busy[0]}]")
    with daemon(tmp_path, config) as process:
        wait_for(lambda: knobs(busy) != before)

        def ended() -> bool:
            process.terminate()
            return process.poll() is not None

        wait_for(ended, every_s=0.001)
        _, errors = process.communicate()
    assert process.returncode in (ExitStatus.DONE, -signal.SIGTERM)  # an interpreter that ends is not ours
    assert "stopped: " in errors
    assert "without putting back" not in errors
    assert knobs(busy) == before


def test_a_probe_that_is_ended_leaves_no_group_and_of_a_killed_one_verify_tells(tmp_path: Path) -> None:
    for number, left in ((signal.SIGTERM, False), (signal.SIGKILL, True)):
        with subprocess.Popen([sys.executable, "-m", "dasec", "probe"], stdout=subprocess.PIPE) as process:
            name = f"dasec-probe-{process.pid}-"
            wait_for(lambda: any(name in path for path in _probe_groups()))  # noqa: B023  # called at once
            assert not any(name in line for line in dasec("verify").out.splitlines())
            process.send_signal(number)
        assert any(name in path for path in _probe_groups()) == left
        told = [line for line in dasec("verify").out.splitlines() if name in line]
        assert [line.endswith(": run `dasec restore`") for line in told] == [True] * left

    def restored() -> bool:
        """Its children hold a group for a moment."""
        assert dasec("restore", "--directory", tmp_path).status == ExitStatus.DONE
        return not any(name in path for path in _probe_groups())

    wait_for(restored)


def _probe_groups() -> list[str]:
    hierarchy = cgroupfs.find_hierarchy()
    return [group for group in hierarchy.children(hierarchy.root) if PROBE_GROUP in group]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_daemon_that_is_stopped_while_it_still_tries_what_works_leaves_nothing(
    number: signal.Signals, tmp_path: Path, busy: list[int]
) -> None:
    config = configuration(tmp_path, "", f"pids = [{busy[0]}]")
    with subprocess.Popen(run(config, tmp_path / "d"), stderr=subprocess.PIPE, text=True) as process:
        name = f"dasec-probe-{process.pid}-"
        wait_for(lambda: any(name in path for path in _probe_groups()))
        process.send_signal(number)
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == ExitStatus.DONE
    assert errors.splitlines()[-1] == "dasec: stopped: 0 knobs put back"
    assert not any(name in path for path in _probe_groups())


def test_a_daemon_whose_stderr_is_closed_has_a_keeper_that_speaks_to_nobody(
    tmp_path: Path, busy: list[int]
) -> None:
    config, state = configuration(tmp_path, PAPER, f"pids = [{busy[0]}]"), tmp_path / "state"
    command = f"exec {shlex.join(run(config, state))} 2>&-"
    with subprocess.Popen(["bash", "-c", command]) as process:
        wait_for(lambda: (state / "status.json").exists() or process.poll() is not None)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        assert [os.readlink(f"/proc/{child}/fd/2") for child in children] == [os.devnull]
        process.terminate()
        assert process.wait(PATIENCE_S) == ExitStatus.DONE


def test_the_daemon_takes_no_core_from_who_runs_and_leaves_it_to_who_wakes_up(
    tmp_path: Path, busy: list[int]
) -> None:
    with daemon(tmp_path, configuration(tmp_path, PAPER, f"pids = [{busy[0]}]")) as process:
        wait_for(lambda: schedattr.get(process.pid).policy == schedattr.SCHED_BATCH)
        ours, theirs = schedattr.get(process.pid), schedattr.get(busy[0])
        slices = ours.slice_ns > theirs.slice_ns
        assert slices or ours.slice_ns == 0  # before 6.12 no thread has one of its own
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        named = {Path(f"/proc/{pid}/comm").read_text().strip(): int(pid) for pid in children}
        assert schedattr.get(named["dasec-keeper"]).policy == schedattr.SCHED_OTHER


def test_a_reload_lets_a_workload_go_as_it_was_takes_another_and_replays(
    tmp_path: Path, busy: list[int]
) -> None:
    with subprocess.Popen(["sleep", "60"]) as other:
        before = knobs(busy)
        state, record = tmp_path / "state", tmp_path / "r"
        config = configuration(tmp_path, PAPER, f"pids = [{busy[0]}]")
        with daemon(tmp_path, config, "--record", str(record)) as process:
            wait_for(lambda: knobs(busy) != before)
            configuration(tmp_path, "policy = 'x'\nperiod_ms = 40\n", f"pids = [{other.pid}]")
            refused = dasec("reload", "--directory", state)
            assert (refused.status, len(refused.errors)) == (ExitStatus.USAGE, 2)
            assert knobs(busy) != before

            configuration(tmp_path, PAPER, f"pids = [{other.pid}]")
            taken = dasec("reload", "--directory", state)
            assert (taken.status, taken.out) == (ExitStatus.DONE, "reloaded: policy dasec\n"), taken.errors
            assert knobs(busy) == before
            assert dasec("verify", "--directory", state).status == ExitStatus.DONE
            shown = json.loads(dasec("status", "--json", "--directory", state).out)
            assert [each["vcpus"] for each in shown["workloads"]] == [1]
            assert shown["pid"] == process.pid

            configuration(tmp_path, PAPER.replace('"dasec"', '"none"'), f"pids = [{busy[0]}]")
            assert dasec("reload", "--directory", state).status == ExitStatus.DONE
            process.terminate()
            _, errors = process.communicate(timeout=PATIENCE_S)
            assert process.returncode == ExitStatus.DONE, errors
        other.kill()
    assert knobs(busy) == before
    assert dasec("replay", record).status == ExitStatus.DONE


def test_a_killed_daemon_is_cleaned_up_after_and_its_record_replays(tmp_path: Path, busy: list[int]) -> None:
    before = knobs(busy)
    config = configuration(tmp_path, PAPER, f"pids = [{busy[0]}]")
    with daemon(tmp_path, config, "--record", str(tmp_path / "r")) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
    wait_for(lambda: knobs(busy) == before)
    told = dasec("status", "--directory", tmp_path / "state")
    assert (told.status, len(told.errors)) == (ExitStatus.FAILED, 1)
    assert dasec("replay", tmp_path / "r").status == ExitStatus.DONE


def test_a_refused_record_is_one_line_here_too(tmp_path: Path, busy: list[int]) -> None:
    config = configuration(tmp_path, PAPER, f"pids = [{busy[0]}]")
    answer = dasec("run", "--config", config, "--record", config, "--directory", tmp_path / "state")
    assert (answer.status, len(answer.errors)) == (ExitStatus.USAGE, 1)
    assert answer.errors[0].endswith("is not a DASEC record: give another file to record to")


def test_a_bug_is_a_traceback_and_everything_is_put_back(tmp_path: Path, busy: list[int]) -> None:
    before = knobs(busy)
    config = configuration(tmp_path, PAPER, f"pids = [{busy[0]}]")
    arguments = ["run", "--config", str(config), "--directory", str(tmp_path / "state")]
    program = (
        "import dasec.paper as p\n"
        "good = p.Dasec.decide\n"
        "def bug(self, period, state):\n"
        "    if period.index == 20: raise ZeroDivisionError('bug')\n"
        "    return good(self, period, state)\n"
        "p.Dasec.decide = bug\n"
        f"from dasec.commands.cli import main\nmain({arguments!r})\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == ExitStatus.FAILED
    assert "ZeroDivisionError: bug" in done.stderr
    assert knobs(busy) == before


def test_a_dry_run_changes_nothing(tmp_path: Path, busy: list[int]) -> None:
    before = knobs(busy)
    config = configuration(tmp_path, PAPER, f"pids = [{busy[0]}]")
    record = tmp_path / "r"
    ran = dasec("run", "--config", config, "--dry-run", "--periods", "20", "--record", record)
    assert ran.status == ExitStatus.DONE, ran.errors
    assert knobs(busy) == before
    assert '"dry_run"' in record.read_text()
    assert '"applied"' not in record.read_text()
    assert dasec("replay", record).status == ExitStatus.DONE


def test_without_root_run_is_one_line_that_says_what_still_works(tmp_path: Path, open_folder: Path) -> None:
    config = configuration(open_folder, BUSY)
    answer = dasec("run", "--config", config, "--directory", "/run/dasec-of-nobody", before=as_nobody())
    assert answer.status == ExitStatus.HOST
    assert len(answer.errors) == 1
    assert "--dry-run" in answer.errors[0]


def test_without_root_a_directory_of_ones_own_is_not_what_is_lacking(open_folder: Path) -> None:
    config = configuration(open_folder, BUSY)
    answer = dasec("run", "--config", config, "--directory", open_folder / "state", before=as_nobody())
    shutil.rmtree(open_folder / "state")
    assert answer.status == ExitStatus.HOST
    lock = "dasec: /run/dasec: Permission denied: the lock of this host is there: run as root"
    assert answer.errors == [f"{lock}; `--dry-run` needs neither"]


def test_without_root_a_dry_run_works_on_ones_own_processes(open_folder: Path) -> None:
    with subprocess.Popen([*as_nobody(), "sleep", "60"]) as sleeper:
        config = configuration(open_folder, "period_ms = 20\n", f"pids = [{sleeper.pid}]")
        answer = dasec(
            *("run", "--dry-run", "--config", config, "--periods", "5", "--record", open_folder / "r"),
            before=as_nobody(),
        )
        sleeper.kill()
    assert answer.status == ExitStatus.DONE, answer.errors
    assert "Traceback" not in "".join(answer.errors)
    assert dasec("replay", open_folder / "r").status == ExitStatus.DONE


def test_without_root_probe_says_what_works(open_folder: Path) -> None:
    answer = dasec("probe", before=as_nobody())
    assert "Traceback" not in "".join(answer.errors)
    assert answer.status in (ExitStatus.DONE, ExitStatus.HOST)
    assert "rescheduling latency" in answer.out


def test_a_full_file_system_under_the_record_is_one_line_and_the_daemon_runs_on(
    tmp_path: Path, busy: list[int]
) -> None:
    config = configuration(tmp_path, PAPER, f"pids = [{busy[0]}]")
    disk = tmp_path / "disk"
    disk.mkdir()
    inside = f'mount -t tmpfs -o size=16k none {disk} && exec "$@"'
    answer = dasec(
        *(
            "run",
            "--config",
            config,
            "--periods",
            "80",
            "--record",
            disk / "r",
            "--directory",
            tmp_path / "state",
        ),
        before=("unshare", "--mount", "sh", "-c", inside, "sh"),
    )
    assert answer.status == ExitStatus.DONE, answer.errors
    told = [line for line in answer.errors if "No space left on device" in line]
    assert len(told) == 1
    assert "running on without a record" in told[0]


def test_a_full_file_system_under_the_journal_writes_no_knob_and_says_so_once(
    tmp_path: Path, busy: list[int]
) -> None:
    config = configuration(tmp_path, PAPER, f"pids = [{busy[0]}]")
    disk = tmp_path / "state"
    disk.mkdir()
    fill = f"dd if=/dev/zero of={disk}/journal.fill bs=4k 2>/dev/null; "
    inside = f'mount -t tmpfs -o size=64k,mode=700 none {disk} && {{ {fill} exec "$@"; }}'
    answer = dasec(
        *("run", "--config", config, "--periods", "30", "--record", tmp_path / "r", "--directory", disk),
        before=("unshare", "--mount", "sh", "-c", inside, "sh"),
    )
    assert answer.status == ExitStatus.DONE, answer.errors
    assert len([line for line in answer.errors if "cannot write any knob" in line]) == 1
    assert '"applied"' not in (tmp_path / "r").read_text()


def test_the_overhead_of_a_few_vcpus_can_be_measured() -> None:
    answer = dasec("bench", "overhead", "--vcpus", "16", "--periods", "25", "--json")
    assert answer.status == ExitStatus.DONE, answer.errors
    result = json.loads(answer.out)
    assert result["vcpus"] == 16
    assert result["periods"] >= 10  # a busy machine leaves some out
    assert 0 < result["cpu_percent_of_one_core"] < 100
    assert 0 < result["period_mean_ms"] <= result["period_p99_ms"]
    assert 0 < result["active_fraction"] <= 1
    assert 10 < result["rss_mib"] < 200
