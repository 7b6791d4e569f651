"""RCU's thread is real-time as long as our scheduler may have the host. A process of ours plays it, of which
/proc says what it says of a thread of the kernel's own."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Self

import pytest

from dasec import log
from dasec.bpf.libbpf import BpfUnavailable
from dasec.commands import scx, survey
from dasec.errors import ExitStatus, Refusal
from dasec.hosts.fake.fake import EXACT
from dasec.hosts.sched_ext.limits import LimitWatch
from dasec.hosts.sched_ext.rcu import FIRST, rcu_first, unseen
from dasec.knobs import realtime
from dasec.knobs.realtime import ORDINARY, REAL_TIME
from dasec.linux import procfs, sched_ext
from dasec.safety.journal.journal import Journal
from dasec.safety.restore import recover
from guests.waiting import PATIENCE_S
from tests.kin import keeper_of

pytestmark = pytest.mark.host

NICE = 3
FLAGS = 6
"""Field of a stat line, behind the name."""


class Rcu:
    """A process, and a /proc that knows it only as the kernel's own."""

    def __init__(self, pid: int, folder: Path) -> None:
        self.pid, self.proc = pid, folder / "proc"
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
        fields[FLAGS] = str(int(fields[FLAGS]) | procfs.PF_KTHREAD)
        task = self.proc / f"{pid}/task/{pid}"
        task.mkdir(parents=True)
        (task / "stat").write_text(f"{pid} (rcu_preempt) {' '.join(fields)}\n")

    @property
    def priority(self) -> int:
        return os.sched_getparam(self.pid).sched_priority

    def become(self, policy: int, priority: int) -> None:
        os.sched_setscheduler(self.pid, policy, os.sched_param(priority))


@pytest.fixture
def rcu(tmp_path: Path) -> Iterator[Rcu]:
    with subprocess.Popen(["nice", f"-n{NICE}", "sleep", "100"]) as process:
        yield Rcu(process.pid, tmp_path)
        process.kill()


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    made, _ = Journal.open(tmp_path / "state")
    yield made
    made.close()


def test_it_is_real_time_meanwhile_and_what_it_was_afterwards(rcu: Rcu, journal: Journal) -> None:
    with rcu_first(journal, str(rcu.proc)):
        assert (os.sched_getscheduler(rcu.pid), rcu.priority) == (os.SCHED_FIFO, FIRST)
        (held,) = journal.outstanding()
        assert (held.ref.kind, held.prior, held.ours) == (REAL_TIME, ORDINARY, (FIRST,))
    assert os.sched_getscheduler(rcu.pid) == os.SCHED_OTHER
    assert os.getpriority(os.PRIO_PROCESS, rcu.pid) == NICE
    assert journal.outstanding() == ()


@pytest.mark.parametrize(("policy", "priority"), [(os.SCHED_FIFO, 1), (os.SCHED_FIFO, 9), (os.SCHED_RR, 2)])
def test_one_that_is_real_time_stays_what_it_is(
    rcu: Rcu, journal: Journal, policy: int, priority: int
) -> None:
    rcu.become(policy, priority)
    with rcu_first(journal, str(rcu.proc)):
        assert journal.outstanding() == ()
    assert (os.sched_getscheduler(rcu.pid), rcu.priority) == (policy, priority)


@pytest.mark.parametrize(("policy", "priority"), [(os.SCHED_FIFO, 7), (os.SCHED_RR, 2), (os.SCHED_BATCH, 0)])
def test_what_somebody_else_makes_of_it_meanwhile_stays(
    rcu: Rcu, journal: Journal, policy: int, priority: int
) -> None:
    with rcu_first(journal, str(rcu.proc)):
        rcu.become(policy, priority)
    assert (os.sched_getscheduler(rcu.pid), rcu.priority) == (policy, priority)
    assert journal.outstanding() == ()


def test_it_waits_for_the_end_of_our_scheduler_and_is_kept_in_mind_if_that_stays(
    rcu: Rcu,
    journal: Journal,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(realtime, "_LOOKS", 2)
    monkeypatch.setattr(sched_ext, "name", lambda: sched_ext.OURS)
    with rcu_first(journal, str(rcu.proc)):
        pass
    assert "our scheduler still has this host: stop it first: run `dasec restore`" in caplog.text
    assert rcu.priority == FIRST
    assert len(journal.outstanding()) == 1
    journal.close()
    monkeypatch.undo()
    restored, _ = recover(tmp_path / "state")
    assert (restored.put_back, rcu.priority) == (1, ORDINARY)


def test_where_it_cannot_be_made_so_the_whole_host_is_refused_in_one_line(
    rcu: Rcu, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(tid: int, policy: int, parameter: os.sched_param) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "sched_setscheduler", refused)
    said = r"RCU .* real-time \(Operation not permitted\).*partial mode"
    with pytest.raises(BpfUnavailable, match=said), rcu_first(journal, str(rcu.proc)):
        pytest.fail("it was let in")
    assert journal.outstanding() == ()


def possible(folder: Path, cpus: str) -> str:
    """A /sys of a machine that may have these."""
    place = folder / "devices/system/cpu"
    place.mkdir(parents=True)
    (place / "possible").write_text(f"{cpus}\n")
    return str(folder)


def play_it(rcu: Rcu) -> None:
    """Its name, and nothing of the kernel's own."""
    stat = rcu.proc / f"{rcu.pid}/task/{rcu.pid}/stat"
    stat.write_text(Path(f"/proc/{rcu.pid}/stat").read_text().replace("(sleep)", "(rcu_preempt)"))


def test_a_process_of_that_name_is_not_the_kernels(rcu: Rcu, journal: Journal, tmp_path: Path) -> None:
    """On a machine with one CPU, where there may be none."""
    play_it(rcu)
    with rcu_first(journal, str(rcu.proc), possible(tmp_path / "sys", "0")):
        assert rcu.priority == ORDINARY


def test_where_it_is_not_seen_the_whole_host_is_refused_in_one_line(
    rcu: Rcu, journal: Journal, tmp_path: Path
) -> None:
    """As in a container, from where no thread of the kernel's is seen."""
    play_it(rcu)
    said = "RCU is not seen here .*pid namespace.*partial mode"
    sysfs = possible(tmp_path / "sys", "0-1")
    with pytest.raises(BpfUnavailable, match=said), rcu_first(journal, str(rcu.proc), sysfs):
        pytest.fail("it was let in")
    assert rcu.priority == ORDINARY


def test_a_probe_says_so_too(
    rcu: Rcu, command: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command.setattr(survey, "why_not_tried", lambda level: None)
    command.setattr(survey, "probe", lambda: EXACT)
    command.setattr(survey, "binding_limits", lambda: [])
    command.setattr(signal, "signal", lambda number, handler: None)
    for why_not, said in ((unseen(str(rcu.proc)), "yes"), ("RCU is not seen here", "no ")):
        command.setattr(survey, "unseen", lambda why=why_not: why)
        survey.show(as_json=False)
        assert f"own scheduler         {said}" in capsys.readouterr().out


class KeeperKiller:
    """Plays our scheduler, with which the kernel is content until a second keeper is there."""

    def __init__(self, level: int) -> None:
        self.level, self.killed = level, 0
        self.ends = time.monotonic() + PATIENCE_S

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def ended(self) -> str | None:
        keeper = keeper_of(os.getpid())
        if not self.killed and keeper is not None:
            self.killed = keeper
            os.kill(keeper, signal.SIGKILL)
        if keeper not in (None, self.killed):
            return "a second keeper is there"
        return "none is there" if time.monotonic() > self.ends else None


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The command without what is this process's own, where the scheduler may be loaded."""
    monkeypatch.setattr(log, "start", lambda: None)
    monkeypatch.setattr(signal, "pthread_sigmask", lambda how, mask: set())
    monkeypatch.setattr(scx, "why_not", lambda: None)
    monkeypatch.setattr(scx, "options", lambda level: level)
    return monkeypatch


def test_a_keeper_that_is_killed_under_the_command_is_replaced(
    tmp_path: Path, command: pytest.MonkeyPatch
) -> None:
    """Else nobody would put RCU's thread back if the command were killed after it."""
    command.setattr(scx, "rcu_first", lambda journal: nullcontext())
    command.setattr(scx, "Scheduler", KeeperKiller)
    command.setattr(scx, "no_vms", lambda level: None)
    command.setattr(scx, "LimitWatch", lambda: LimitWatch(list))
    command.setattr(scx, "LOOK_EVERY_S", 0.05)
    with pytest.raises(Refusal, match="a second keeper is there"):
        scx.schedule(2, tmp_path / "state")


def test_where_the_kernel_does_not_take_it_after_all_the_command_says_one_line_and_leaves_no_keeper(
    tmp_path: Path, command: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise BpfUnavailable("not today")

    command.setattr(scx, "rcu_first", refused)
    with pytest.raises(Refusal) as caught:
        scx.schedule(2, tmp_path / "state")
    assert (caught.value.status, caught.value.lines) == (ExitStatus.HOST, ("scx: not today",))
    assert keeper_of(os.getpid()) is None
