"""The host on our patched kernel: what its kernel counts, where weights go, and the daemon end to end.

Run in a guest by tests/vm/test_patched_kernel.py; skipped on a kernel without the patch.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dasec.errors import ExitStatus
from dasec.hosts.patched.files import ProcessFiles
from dasec.knobs import knob
from dasec.knobs.knob import KnobRef, Write
from dasec.knobs.patched import GRANULARITY, THREAD_WEIGHT
from dasec.linux import dasecfile, procfs
from dasec.model import Change, Knob, Outcome, ThreadState, VcpuId
from dasec.safety.fingerprint import Fingerprint, differences, fingerprint
from guests.waiting import wait_for
from tests.contract.stage import PatchedStage, probed_with_patch, roster
from tests.kin import children

from ..unit.service.command import configuration, dasec
from .group import TestGroup
from .running import burner

pytestmark = pytest.mark.host

SETTINGS = 'period_ms = 40\npolicy = "dasec"\n[host]\nbackend = "patched_cfs"\n'

START_S = 120.0
"""Until the daemon writes its first knob, on the slowest guest."""

PING_PONG = """
import os, threading, time
pipe, ready = os.pipe(), threading.Event()
def sleeper():
    print(threading.get_native_id(), flush=True)
    for _ in range(200):
        os.read(pipe[0], 1)
    print("woken", flush=True)
    time.sleep(60)
threading.Thread(target=sleeper, daemon=True).start()
input()
for _ in range(200):
    os.write(pipe[1], b"x")
    time.sleep(0.002)
input()
"""


@pytest.fixture(autouse=True)
def _patched() -> None:
    if probed_with_patch().backend != "patched_cfs":
        pytest.skip("this kernel has no /proc/PID/dasec; tests/vm runs this on one that has")


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[PatchedStage]:
    made = PatchedStage(tmp_path, dry_run=False)
    yield made
    made.close()


@pytest.fixture
def busy() -> Iterator[int]:
    """A process whose threads burn now and then."""
    with burner() as process:
        yield process.pid


def moved(before: Fingerprint, busy: int) -> bool:
    """Has a thread another knob? A group that is there for a moment, as when the daemon probes, is none."""
    return any(line.startswith("thread ") for line in differences(before, fingerprint([busy])))


@contextmanager
def running(config: Path, state: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "dasec", "run", "--config", str(config), "--directory", str(state)]
    with subprocess.Popen(command) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def identity(pid: int, tid: int | None = None) -> VcpuId:
    tid = tid or pid
    return VcpuId(pid, tid, procfs.read_stat(pid, tid).start_ticks)


def one_change(vcpu: VcpuId, which: Knob, value: int) -> Change:
    return Change(vcpu, which, value, value, "test")


def test_some_periods_set_knobs_of_threads_and_leave_no_trace(tmp_path: Path, busy: int) -> None:
    before = fingerprint([busy])
    config = configuration(tmp_path, SETTINGS, f"pids = [{busy}]")
    record, state = tmp_path / "r", tmp_path / "state"
    ran = dasec("run", "--config", config, "--periods", "25", "--record", record, "--directory", state)
    assert ran.status == ExitStatus.DONE, ran.errors
    assert any("8 vCPUs by their own weight, 0 by that of their cgroup" in line for line in ran.errors)
    assert differences(before, fingerprint([busy])) == ()
    assert '"applied"' in record.read_text()
    assert dasec("replay", record).status == ExitStatus.DONE
    assert dasec("verify", "--directory", state).status == ExitStatus.DONE


@pytest.mark.parametrize(
    "keeper", [pytest.param("with its keeper", marks=pytest.mark.slow), "without its keeper, by hand"]
)
def test_what_a_killed_daemon_leaves_is_put_back(tmp_path: Path, busy: int, keeper: str) -> None:
    before = fingerprint([busy])
    config, state = configuration(tmp_path, SETTINGS, f"pids = [{busy}]"), tmp_path / "state"
    with running(config, state) as process:
        wait_for(lambda: moved(before, busy) or process.poll() is not None, START_S)
        if keeper == "with its keeper":
            process.send_signal(signal.SIGKILL)
            wait_for(lambda: not differences(before, fingerprint([busy])))
            return
        process.send_signal(signal.SIGSTOP)
        for child in children(process.pid):
            os.kill(child, signal.SIGKILL)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert differences(before, fingerprint([busy]))
    restored = dasec("restore", "--directory", state)
    assert restored.status == ExitStatus.DONE, restored.errors
    assert differences(before, fingerprint([busy])) == ()
    assert dasec("verify", "--directory", state).status == ExitStatus.DONE


def test_of_three_hogs_on_a_core_one_runs_and_two_are_ready(stage: PatchedStage) -> None:
    """Mostly: the three are read one after the other, and something else may have the core."""
    spin = "print(flush=True)\nwhile True: pass"
    hogs = [subprocess.Popen([sys.executable, "-S", "-c", spin], stdout=subprocess.PIPE) for _ in range(3)]
    try:
        last = max(os.sched_getaffinity(0))
        for hog in hogs:
            os.sched_setaffinity(hog.pid, {last})
        os.sched_setaffinity(0, os.sched_getaffinity(0) - {last})
        for hog in hogs:
            assert hog.stdout is not None
            hog.stdout.readline()  # its program is loaded: from now on it never sleeps
        vcpus = [identity(hog.pid) for hog in hogs]
        seen = [stage.host.observe(roster(vcpus)).counters for _ in range(20)]
        states = [[counters[vcpu].state for vcpu in vcpus] for counters in seen]
        assert not any(ThreadState.IDLE in three for three in states)
        assert any(three.count(ThreadState.RUNNING) == 1 for three in states)
        assert sum(three.count(ThreadState.READY) for three in states) > len(states)
        waited = sum(seen[-1][vcpu].ready_ns - seen[0][vcpu].ready_ns for vcpu in vcpus)
        assert waited > 0
    finally:
        os.sched_setaffinity(0, os.sched_getaffinity(0) | {last})
        for hog in hogs:
            hog.kill()
            hog.wait()


def test_who_woke_whom_is_counted(stage: PatchedStage) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", PING_PONG], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdin is not None
    assert child.stdout is not None
    woken, waker = identity(child.pid, int(child.stdout.readline())), identity(child.pid)
    before = dict(stage.host.observe(roster([woken, waker])).counters[woken].wakers or ())
    child.stdin.write("\n")
    child.stdin.flush()
    assert child.stdout.readline() == "woken\n"
    after = dict(stage.host.observe(roster([woken, waker])).counters[woken].wakers or ())
    child.kill()
    child.communicate()
    assert after[waker] - before.get(waker, 0) >= 190


def test_the_weight_of_a_vcpu_alone_in_its_group_goes_to_the_group(stage: PatchedStage) -> None:
    alone, among = stage.spawn(), stage.spawn()
    group = TestGroup("patched")
    try:
        group.enter(alone.pid, "vcpu0")
        stage.host.observe(roster([alone, among]))
        assert "1 vCPUs by their own weight, 1 by that of their cgroup" in stage.mainline.notices()[0]
        results = stage.host.apply([one_change(one, Knob.WEIGHT, 2048) for one in (alone, among)])
        assert {result.outcome for result in results} == {Outcome.APPLIED}
        assert group.weight("vcpu0") == 2048
        own = [knob.read(KnobRef(one, THREAD_WEIGHT)) for one in (alone, among)]
        assert own == [dasecfile.DEFAULT, 2048]
        stage.host.restore()
        assert group.weight("vcpu0") == 1024
        assert knob.read(KnobRef(among, THREAD_WEIGHT)) == dasecfile.DEFAULT
    finally:
        stage.end(alone)
        group.close()


def test_a_number_that_was_there_before_us_returns_and_not_the_default(stage: PatchedStage) -> None:
    vcpu = stage.spawn()
    weight, granularity = (KnobRef(vcpu, kind) for kind in (THREAD_WEIGHT, GRANULARITY))
    knob.write(weight, 3000)
    knob.write(granularity, 700_000)
    assert stage.host.observe(roster([vcpu])).knobs[vcpu][:2] == (3000, 700_000)
    changes = [one_change(vcpu, Knob.WEIGHT, 2048), one_change(vcpu, Knob.RESCHEDULING_LATENCY, 0)]
    assert {result.outcome for result in stage.host.apply(changes)} == {Outcome.APPLIED}
    assert (knob.read(weight), knob.read(granularity)) == (2048, 0)
    assert stage.host.restore().put_back == 2
    assert (knob.read(weight), knob.read(granularity)) == (3000, 700_000)


def test_who_reniced_a_thread_is_yielded_to(stage: PatchedStage) -> None:
    vcpu = stage.spawn()
    stage.host.observe(roster([vcpu]))
    stage.host.apply([one_change(vcpu, Knob.WEIGHT, 2048)])
    os.setpriority(os.PRIO_PROCESS, vcpu.tid, 5)
    assert stage.host.observe(roster([vcpu])).knobs[vcpu].weight is None
    stage.host.restore()
    assert os.getpriority(os.PRIO_PROCESS, vcpu.tid) == 5
    assert knob.read(KnobRef(vcpu, THREAD_WEIGHT)) == dasecfile.DEFAULT


def test_a_child_is_born_with_the_defaults(stage: PatchedStage) -> None:
    shell = subprocess.Popen(["sh", "-c", "read x; sleep 60 & echo $!; wait"], stdin=-1, stdout=-1, text=True)
    assert shell.stdin is not None
    assert shell.stdout is not None
    vcpu = identity(shell.pid)
    stage.host.observe(roster([vcpu]))
    stage.host.apply([one_change(vcpu, Knob.WEIGHT, 2048), one_change(vcpu, Knob.RESCHEDULING_LATENCY, 1000)])
    shell.stdin.write("\n")
    shell.stdin.flush()
    child = identity(int(shell.stdout.readline()))
    kinds = (THREAD_WEIGHT, GRANULARITY)
    assert [knob.read(KnobRef(child, kind)) for kind in kinds] == [dasecfile.DEFAULT] * 2
    os.kill(child.pid, signal.SIGKILL)
    shell.kill()
    shell.communicate()


def test_one_bad_line_leaves_all_of_a_process_as_it_was_and_to_be_written_one_by_one(
    stage: PatchedStage,
) -> None:
    vcpu = stage.spawn()
    ghost = vcpu._replace(tid=2**22)
    writes = [Write(KnobRef(one, GRANULARITY), dasecfile.DEFAULT, 5000) for one in (vcpu, ghost)]
    files = ProcessFiles()
    assert files.write_together(writes) == frozenset()
    assert knob.read(writes[0].ref) == dasecfile.DEFAULT
    assert files.write_together(writes[:1]) == {writes[0]}
    assert knob.read(writes[0].ref) == 5000
    files.keep(frozenset())


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        (dasecfile.WEIGHT, 1, "a weight outside"),
        (dasecfile.GRANULARITY, 2_000_000_000, "a granularity outside"),
        (dasecfile.WEIGHT, "much", "a line is malformed"),
    ],
)
def test_the_kernels_refusals_are_said_in_words(
    stage: PatchedStage, key: str, value: int | str, why: str
) -> None:
    vcpu = stage.spawn()
    with pytest.raises(OSError, match=why):
        dasecfile.write_knob(vcpu.pid, vcpu.tid, key, value)


def test_probe_finds_the_patch_and_mainline_can_be_asked_for_all_the_same(tmp_path: Path) -> None:
    found = probed_with_patch()
    assert (found.weight, found.rescheduling_latency, found.affinity, found.wake_edges) == (True,) * 4
    assert "backend: patched_cfs" in dasec("probe").out
    config = configuration(tmp_path, '[host]\nbackend = "mainline"\n')
    ran = dasec("run", "--dry-run", "--config", config, "--periods", "2")
    assert any("on mainline" in line for line in ran.errors)
