"""The keeper, as a real process: it outlives what ends the daemon, and puts everything back."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dasec.knobs import knob
from dasec.knobs.knob import KnobRef
from dasec.knobs.slices import SLICE
from dasec.linux import procfs
from dasec.model import VcpuId
from dasec.safety.fingerprint import Fingerprint, differences, fingerprint
from dasec.safety.journal.journal import peek
from dasec.safety.keeper import Keeper
from guests.waiting import PATIENCE_S, gone, wait_for
from tests.stopwatch import Stopwatch

pytestmark = pytest.mark.host

RESTORED_WITHIN_S = 1.0

DAEMON = """
import signal, sys, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
    signal.signal(number, signal.SIG_DFL)  # whoever runs the tests, nohup or a shell, may ignore them
from pathlib import Path
from dasec.knobs import knob
from dasec.knobs.knob import KnobRef, Write
from dasec.knobs.masks import AFFINITY
from dasec.knobs.slices import SLICE
from dasec.model import VcpuId
from dasec.safety.journal.journal import Journal
from dasec.safety.keeper import Keeper

directory, pid, start_ticks = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
journal, _ = Journal.open(directory)
keeper = Keeper.start(directory)
who = VcpuId(pid, pid, start_ticks)
writes = [
    Write(KnobRef(who, SLICE), 0, 7_000_000),
    Write(KnobRef(who, AFFINITY), knob.read(KnobRef(who, AFFINITY)), (0,)),
]
journal.begin(writes)
for one in writes:
    knob.write(one.ref, one.new)
print(keeper.pid, flush=True)
if sys.stdin.readline().strip() == "stop":
    from dasec.safety.restore import put_all_back
    put_all_back(journal)
    journal.close()
    keeper.dismiss()
"""


class Patient:
    """A process whose knobs are changed."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(["sleep", "600"])
        pid = self.process.pid
        self.id = VcpuId(pid, pid, procfs.read_stat(pid, pid).start_ticks)

    def slice_ns(self) -> knob.NativeValue:
        return knob.read(KnobRef(self.id, SLICE))


class Daemon:
    """The least that has a journal and a keeper."""

    def __init__(self, directory: Path, patient: Patient) -> None:
        arguments = [str(directory), str(patient.id.pid), str(patient.id.start_ticks)]
        self.process = subprocess.Popen(
            [sys.executable, "-c", DAEMON, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        self.keeper_pid = int(self.process.stdout.readline())

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def patient() -> Iterator[Patient]:
    one = Patient()
    yield one
    one.process.kill()
    one.process.wait()


@pytest.fixture
def daemon(tmp_path: Path, patient: Patient) -> Iterator[Daemon]:
    one = Daemon(tmp_path, patient)
    yield one
    one.kill()
    assert one.process.stderr is not None
    one.process.stderr.close()


def knobs_of(patient: Patient) -> Fingerprint:
    """Without the groups: any service of this machine may make one meanwhile."""
    return fingerprint([patient.id.pid])._replace(groups={})


@pytest.mark.alone
def test_a_killed_daemons_knobs_are_back_within_a_second(tmp_path: Path, patient: Patient) -> None:
    before = knobs_of(patient)
    daemon = Daemon(tmp_path, patient)
    assert patient.slice_ns() == 7_000_000
    watch, took_s = Stopwatch(daemon.keeper_pid), [0.0]

    def restored() -> bool:
        took_s.append(watch.seconds())
        return not differences(before, knobs_of(patient))

    daemon.kill()
    wait_for(restored, every_s=0.002)
    assert took_s[-1] < RESTORED_WITHIN_S
    wait_for(lambda: gone(daemon.keeper_pid))
    assert peek(tmp_path)[0].held == {}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_for_the_daemons_whole_group_does_not_reach_the_keeper_nor_end_it(
    daemon: Daemon, patient: Patient, number: signal.Signals
) -> None:
    before_ns = patient.slice_ns()
    os.kill(daemon.keeper_pid, number)
    os.killpg(daemon.process.pid, number)
    wait_for(lambda: patient.slice_ns() != before_ns)


def test_the_keeper_touches_nothing_after_an_orderly_stop(daemon: Daemon, patient: Patient) -> None:
    _, said = daemon.process.communicate("stop", timeout=PATIENCE_S)
    assert (daemon.process.returncode, said) == (0, "")
    assert gone(daemon.keeper_pid)
    assert patient.slice_ns() != 7_000_000


def test_the_keeper_says_what_it_did_on_the_daemons_stderr(daemon: Daemon) -> None:
    daemon.kill()
    assert daemon.process.stderr is not None
    said = daemon.process.stderr.read()
    assert said == (
        "dasec-keeper: the daemon ended without putting back what it had changed: 2 knobs put back\n"
    )


def test_a_keeper_whose_listener_does_not_read_puts_everything_back_and_ends(
    daemon: Daemon, patient: Patient
) -> None:
    before_ns = patient.slice_ns()
    assert daemon.process.stderr is not None
    fill(f"/proc/self/fd/{daemon.process.stderr.fileno()}")
    daemon.kill()
    wait_for(lambda: gone(daemon.keeper_pid))
    assert patient.slice_ns() != before_ns


def fill(pipe: str) -> None:
    """Until it takes no more."""
    descriptor = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        while os.write(descriptor, bytes(select.PIPE_BUF)):
            pass
    os.close(descriptor)


def test_the_keeper_notices_the_end_although_a_child_of_the_daemon_still_has_the_pipe(
    tmp_path: Path, patient: Patient
) -> None:
    daemon = Daemon(tmp_path, patient)
    life = [
        fd for fd in os.listdir(f"/proc/{daemon.process.pid}/fd") if _is_pipe_writer(daemon.process.pid, fd)
    ]
    held_open = [os.open(f"/proc/{daemon.process.pid}/fd/{fd}", os.O_WRONLY) for fd in life]
    assert held_open
    daemon.kill()
    wait_for(lambda: patient.slice_ns() != 7_000_000)
    for fd in held_open:
        os.close(fd)


def _is_pipe_writer(pid: int, fd: str) -> bool:
    if int(fd) < 3 or not os.readlink(f"/proc/{pid}/fd/{fd}").startswith("pipe:"):
        return False
    flags = Path(f"/proc/{pid}/fdinfo/{fd}").read_text().split("flags:")[1].split()[0]
    return int(flags, 8) & os.O_ACCMODE == os.O_WRONLY


def may_spare() -> bool:
    """Does this process have CAP_SYS_RESOURCE (24), which a lower oom_score_adj needs?"""
    capabilities = Path("/proc/self/status").read_text().split("CapEff:")[1].split()[0]
    return bool(int(capabilities, 16) & 1 << 24)


def test_the_keeper_has_its_own_session_a_name_and_nothing_of_the_daemons(
    daemon: Daemon, tmp_path: Path
) -> None:
    pid = daemon.keeper_pid
    assert os.getsid(pid) == pid
    assert Path(f"/proc/{pid}/comm").read_text() == "dasec-keeper\n"
    assert Path(f"/proc/{pid}/oom_score_adj").read_text() == ("-500\n" if may_spare() else "0\n")
    assert os.readlink(f"/proc/{pid}/fd/0") == os.readlink(f"/proc/{pid}/fd/1") == "/dev/null"
    wait_for(lambda: descriptors(pid) == [str(tmp_path), "anon_inode", "pipe"])


def descriptors(pid: int) -> list[str]:
    """What a process has open besides stdin, stdout and stderr."""
    links = {fd: os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd") if int(fd) > 2}
    return sorted(link.partition(":")[0] for link in links.values())


def test_the_keeper_finds_the_journal_wherever_somebody_has_moved_it(
    tmp_path: Path, patient: Patient
) -> None:
    before, place = knobs_of(patient), tmp_path / "state"
    daemon = Daemon(place, patient)
    place.rename(tmp_path / "elsewhere")
    daemon.kill()
    wait_for(lambda: gone(daemon.keeper_pid))
    assert not differences(before, knobs_of(patient))


def test_a_keeper_that_died_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dasec.safety.keeper._RESPAWN_EVERY_S", 0.0)
    keeper = Keeper.start(tmp_path)
    first = keeper.pid
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: not keeper.alive())
    wait_for(keeper.ensure)
    assert keeper.pid != first
    assert keeper.alive()
    keeper.dismiss()
    assert not keeper.alive()


def test_a_keeper_that_dies_again_and_again_is_not_replaced_more_than_once_a_second(tmp_path: Path) -> None:
    keeper = Keeper.start(tmp_path)
    os.kill(keeper.pid, signal.SIGKILL)
    wait_for(lambda: not keeper.alive())
    first = keeper.pid
    keeper._spawned_s = time.monotonic() + PATIENCE_S  # however long until the next line: no second is over
    assert not keeper.ensure()
    assert keeper.pid == first
    keeper.dismiss()


def test_the_keeper_loads_nothing_heavy() -> None:
    program = "import sys, dasec.safety.keeping; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert loaded & {"pydantic", "click", "rich", "subprocess", "asyncio", "logging"} == set()
