"""Processes, the machine's counters, the workspace and the display, on fakes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from dasec.errors import ExitStatus, Refusal
from dasec.knobs.knob import NativeValue
from dasec.lab.kit import controller, counters, facts, process, workspace
from dasec.lab.kit.controller import Controller, Managed, Report, configuration
from dasec.lab.kit.errors import Interrupted, interruptible
from dasec.lab.kit.tree import TOP_NAME, Tree
from dasec.lab.kit.untouched import Look, changes
from dasec.model import VcpuId
from dasec.safety.fingerprint import Fingerprint
from dasec.safety.verify import Finding


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A /proc with one process of two threads."""
    (tmp_path / "stat").write_text("cpu  100 10 50 800 40 5 15 30 7 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n")
    for tid, spent_ns in ((10, 1_500_000_000), (11, 500_000_000)):
        thread = tmp_path / "10" / "task" / str(tid)
        thread.mkdir(parents=True)
        (thread / "schedstat").write_text(f"{spent_ns} 7 3\n")
    return tmp_path


def test_cpu_time_is_the_sum_over_threads_and_a_vanished_process_counts_nothing(proc: Path) -> None:
    assert counters.cpu_time_s([10, 4711], proc) == 2.0


def test_a_process_that_ends_while_its_threads_are_listed_counts_nothing(
    proc: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "is_dir", lambda path: True)  # as it was a moment ago
    assert counters.cpu_time_s([10, 4711], proc) == 2.0


def test_guest_time_is_not_counted_twice(proc: Path) -> None:
    assert counters.cpu_ticks(proc) == counters.CpuTicks(total=1050, idle=840, stolen=30)


def test_what_the_hypervisor_took_was_used_by_nobody_else_on_the_host() -> None:
    begin, end = counters.CpuTicks(1000, 800, 10), counters.CpuTicks(2000, 1200, 310)
    use = counters.CpuUse.between(begin, end)
    assert (use.busy, use.stolen) == (0.6, 0.3)
    assert use.other_cores(cores=2, ours=0.5) == pytest.approx(0.1)
    assert use.other_cores(cores=2, ours=0.7) == 0.0


def test_a_busy_machine_is_warned_about(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getloadavg", lambda: (0.51, 0.0, 0.0))
    assert "load average 0.51" in facts.warnings(cores=2)[0]
    monkeypatch.setattr("os.getloadavg", lambda: (0.5, 9.0, 9.0))
    assert facts.warnings(cores=2) == ()


def test_the_machine_is_described() -> None:
    known = facts.metadata()
    assert {
        "kernel",
        "cpus",
        "cpu_model",
        "autogroup",
        "governor",
        "libraries",
        "load_average",
    } <= known.keys()


def test_a_process_starts_inside_its_group(tmp_path: Path) -> None:
    tree = Tree(1, tmp_path / TOP_NAME)
    tree.directory("machine").mkdir(parents=True)
    started = process.start(tree, "machine", ["/bin/sh", "-c", "echo $$; exit 7"], tmp_path / "log")
    assert started.wait() == 7
    assert tree.entry("machine").read_text() == process.last_line(tmp_path / "log") + "\n"


def test_without_its_group_a_process_does_not_start_at_all(tmp_path: Path) -> None:
    tree = Tree(1, tmp_path / "removed")
    started = process.start(tree, "machine", ["/bin/touch", str(tmp_path / "ran")], tmp_path / "log")
    assert started.wait() != 0
    assert not (tmp_path / "ran").exists()


def test_an_early_end_is_one_line_with_the_last_words(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("first\nfailed to listen on port 7\n")
    ended = subprocess.Popen(["/bin/false"])
    ended.wait()
    with pytest.raises(Refusal, match="memcached-0: ended early, exit status 1: failed to listen on port 7"):
        process.ensure_alive(ended, "memcached-0", tmp_path / "log")


def test_who_looks_too_late_does_not_take_a_regular_end_for_an_early_one(tmp_path: Path) -> None:
    done = subprocess.Popen(["/bin/true"])
    done.wait()
    process.ensure_alive(done, "memcached-0", tmp_path / "log", time.monotonic())
    with pytest.raises(Refusal, match="memcached-0: ended early, exit status 0: no message"):
        process.ensure_alive(done, "memcached-0", tmp_path / "log", time.monotonic() + 1)


def test_waiting_ends_with_one_line() -> None:
    process.wait_until(lambda: True, "immediate", 0)
    with pytest.raises(Refusal, match=r"never: not within 0\.01 s"):
        process.wait_until(lambda: False, "never", 0.01)


def test_the_daemon_gets_every_workload_by_its_group_or_process_and_its_own_defaults() -> None:
    workloads = [Managed("memcached-0", 1024, (10,), "/dasec-demo/a"), Managed('odd "name"', 4096, (11, 12))]
    assert tomllib.loads(configuration("dasec", workloads)) == {
        "policy": "dasec",
        "guard": {"enabled": False},
        "workload": [
            {"name": "memcached-0", "share": 1024, "cgroup": "/dasec-demo/a"},
            {"name": 'odd "name"', "share": 4096, "pids": [11, 12]},
        ],
    }


def test_an_arm_may_bring_settings_of_its_own() -> None:
    told = configuration("tsa", [Managed("a", 1024, (10,))], 'policy = "dasec"\n[rla]\nenabled = false\n')
    assert tomllib.loads(told) == {
        "policy": "dasec",
        "rla": {"enabled": False},
        "guard": {"enabled": False},
        "workload": [{"name": "a", "share": 1024, "pids": [10]}],
    }


def test_a_second_demo_is_refused_and_a_third_may_follow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = workspace.lock(tmp_path / "demo")
    with monkeypatch.context() as impatient:
        impatient.setattr(workspace, "LOCK_PATIENCE_S", 0.2)
        with pytest.raises(Refusal, match="somebody measures"):
            workspace.lock(tmp_path / "demo")
    workspace.unlock(first, tmp_path / "demo")
    assert not list(tmp_path.iterdir())
    workspace.unlock(workspace.lock(tmp_path / "demo"), tmp_path / "demo")


def test_a_place_that_cannot_be_locked_is_the_hosts_refusal(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="run as root") as refused:
        workspace.lock(tmp_path / "missing" / "demo")
    assert refused.value.status is ExitStatus.HOST


def test_what_an_earlier_demo_left_is_gone_before_the_next_begins(tmp_path: Path) -> None:
    tree, directory = Tree(1, tmp_path / TOP_NAME), tmp_path / "demo"
    (tree.top / "machine" / "service-0").mkdir(parents=True)
    directory.mkdir()
    (directory / "left").touch()
    with workspace.prepared(tree, directory) as prepared:
        assert not tree.top.exists()
        assert list(prepared.iterdir()) == []
    assert not directory.exists()


def test_the_v2_root_gives_up_a_controller_that_it_handed_on_for_us_only(tmp_path: Path) -> None:
    control = tmp_path / "cgroup.subtree_control"
    control.write_text("memory pids\n")
    with workspace.prepared(Tree(2, tmp_path / TOP_NAME), tmp_path / "demo"):
        pass
    assert control.read_text() == "-cpu"
    control.write_text("cpu memory\n")
    with workspace.prepared(Tree(2, tmp_path / TOP_NAME), tmp_path / "demo"):
        pass
    assert control.read_text() == "cpu memory\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_interrupts_once_and_cleaning_is_left_alone(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    cleaned = []

    def interrupted_and_cleaning() -> None:
        try:
            signal.raise_signal(number)
        finally:
            signal.raise_signal(number)
            cleaned.append(True)

    with interruptible(), pytest.raises(Interrupted):
        interrupted_and_cleaning()
    assert cleaned
    assert signal.getsignal(number) is before


def test_only_what_changed_and_could_be_ours_counts_against_the_demo() -> None:
    thread, other = VcpuId(1, 1, 5), VcpuId(2, 2, 6)
    same: dict[str, NativeValue] = {"slice_ns": 3_000_000, "affinity": (0, 1)}
    plain: dict[str, NativeValue] = {"weight": 1024, "quota": "max 100000", "burst": 0}
    before = Fingerprint({thread: same, other: same}, {"/cg/a": plain, "/cg/removed-by-others": plain})
    after = Fingerprint({thread: same}, {"/cg/a": plain, "/cg/dasec-77": {**plain, "weight": 77}})
    elsewhere = Finding("group left over", "/cg/dasec-77", "of another daemon")
    assert changes(Look(before, ()), Look(after, (elsewhere,))) == []
    lowered = {**plain, "quota": "5000 10000"}
    changed = Fingerprint(
        {thread: {**same, "affinity": (0,)}}, {"/cg/a": lowered, f"/cg/{TOP_NAME}/machine": plain}
    )
    assert changes(Look(before, ()), Look(changed, ())) == [
        "thread 1 of process 1: affinity: was (0, 1), is (0,)",
        "group /cg/a: quota was max 100000, is 5000 10000",
        f"group /cg/{TOP_NAME}/machine: is new",
    ]


def test_what_verify_said_before_is_not_held_against_the_demo() -> None:
    nothing = Fingerprint({}, {})
    old, new = Finding("knob", "thread 1", "mend"), Finding("not put back", "/run/dasec", "restore")
    assert changes(Look(nothing, (old,)), Look(nothing, (old, new))) == [str(new)]


def test_the_sentinel_imports_no_plotting_or_statistics() -> None:
    heavy = "{'numpy', 'scipy', 'matplotlib', 'pydantic', 'rich'}"
    program = f"import sys, dasec.lab.kit.sentinel; sys.exit(bool({heavy} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_daemon_that_has_not_reported_yet_is_waited_for_and_one_that_never_does_has_said_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {"changes_by_rule": {"late": 3}, "outcomes": {"applied": 4}, "periods": 7, "late_periods": 0}
    child = subprocess.Popen(["/bin/true"])
    child.wait()
    one = Controller("critical", child, tmp_path / "log", tmp_path)
    monkeypatch.setattr(controller, "STATUS_PATIENCE_S", 0.0)
    assert one.report() == Report()
    monkeypatch.setattr(controller, "STATUS_PATIENCE_S", 30.0)
    text = json.dumps({**said, "troubles": ["no wake-ups are seen"]})
    (tmp_path / "next").write_text(text)
    later = subprocess.Popen(["/bin/sh", "-c", f"sleep 0.3; mv {tmp_path}/next {tmp_path}/status.json"])
    found = one.report()
    later.wait()
    assert found.decided == {"rule late": 3, "applied": 4, "periods": 7, "late periods": 0}
    assert found.troubles == ("no wake-ups are seen",)
