"""A server that forks: it has a weight whatever company it has, by nice inside a group that it shares."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dasec.hosts.host import OnForeignWrite
from dasec.hosts.threads.host import RETRY_PERIODS
from dasec.knobs.nice import NICE
from dasec.linux import procfs, schedattr
from dasec.model import Change, Knob, Outcome, VcpuId
from dasec.safety.fingerprint import differences, fingerprint
from dasec.safety.journal.journal import Journal
from dasec.safety.restore import put_all_back
from guests.waiting import wait_for
from tests.contract.stage import MainlineStage, not_niced, roster

from .group import TestGroup
from .running import Running

pytestmark = pytest.mark.host

SERVER = """
import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for line in sys.stdin:
    child = os.fork()
    if not child:
        while line == "compute\\n":
            pass
        signal.pause()
    print(child, flush=True)
"""
"""For each line a child: of `compute` one that computes, as Redis' that saves, else one that sleeps."""

FORKING = """
import os, sys, time
os.setpriority(os.PRIO_PROCESS, 0, 0)
sys.stdin.readline()
saving = os.fork()
while not saving and os.getppid() != 1:
    pass
while saving:
    child = os.fork()
    if not child:
        time.sleep(0.1)
        os._exit(0)
    os.waitpid(child, 0)
"""
"""When it is told so, a child that computes, and others that come and go."""


def identity(pid: int) -> VcpuId:
    return VcpuId(pid, pid, procfs.read_stat(pid, pid).start_ticks)


class Server:
    """It, and its children."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        not_niced(process.pid)
        self.main = identity(process.pid)

    def fork(self, what: str = "sleep") -> VcpuId:
        """One more child."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{what}\n")
        self._process.stdin.flush()
        return identity(int(self._process.stdout.readline()))

    @staticmethod
    def end(child: VcpuId) -> None:
        """One child less."""
        os.kill(child.pid, signal.SIGKILL)
        wait_for(lambda: not Path(f"/proc/{child.pid}").exists())


@contextmanager
def serving() -> Iterator[Server]:
    with subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Server(process)
        finally:
            process.kill()


@pytest.fixture(params=[True, False], ids=["BPF", "procfs"])
def nicing(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MainlineStage]:
    """The mainline host, which may nice, with either sampler."""
    made = MainlineStage(tmp_path / "state", dry_run=False, own_groups=False, bpf=request.param, nice=True)
    yield made
    made.close()


@pytest.fixture
def server(group: TestGroup) -> Iterator[Server]:
    """One that is alone in a group."""
    with serving() as made:
        group.enter(made.main.pid, "server")
        yield made
        for pid in members(group, "server"):
            os.kill(pid, signal.SIGKILL)


def nices(group: TestGroup) -> set[int]:
    """Of everybody who lives in there."""
    found = set()
    for pid in members(group):
        with contextlib.suppress(ProcessLookupError):
            found.add(schedattr.nice_of(pid))
    return found


def members(group: TestGroup, below: str = "") -> list[int]:
    return [int(word) for word in (group.directory / below / "cgroup.procs").read_text().split()]


def weight(stage: MainlineStage, *vcpus: VcpuId) -> int | None:
    """The first one's, as the next look shows it."""
    return stage.mainline.observe(roster(vcpus)).knobs[vcpus[0]].weight


def weigh(stage: MainlineStage, vcpu: VcpuId, new: int) -> Outcome:
    (result,) = stage.mainline.apply([Change(vcpu, Knob.WEIGHT, 1024, new, "test")])
    return result.outcome


def test_a_server_whose_child_comes_and_goes_has_a_weight_before_meanwhile_and_after(
    nicing: MainlineStage, server: Server, group: TestGroup
) -> None:
    main = server.main
    assert weight(nicing, main) == 1024
    assert weigh(nicing, main, 2048) is Outcome.APPLIED
    assert group.weight("server") == 2048
    child = server.fork("compute")
    both = (main, child)
    assert weight(nicing, *both) is None  # so that a policy takes what comes for another knob
    assert group.weight("server") == 1024
    assert weight(nicing, *both) == 1024
    assert [weigh(nicing, main, 2000), weigh(nicing, child, 512)] == [Outcome.APPLIED] * 2
    assert [schedattr.nice_of(one.tid) for one in both] == [-3, 3]
    server.end(child)
    assert weight(nicing, main) is None
    assert schedattr.nice_of(main.tid) == 0
    assert weight(nicing, main) == 1024
    assert weigh(nicing, main, 2048) is Outcome.APPLIED
    assert (group.weight("server"), schedattr.nice_of(main.tid)) == (2048, 0)
    nicing.mainline.restore()
    assert (group.weight("server"), nicing.journal.outstanding()) == (1024, ())


def test_company_that_nobody_named_is_noticed_when_it_has_gone(
    nicing: MainlineStage, server: Server, group: TestGroup
) -> None:
    main, child = server.main, server.fork()
    seen = [weight(nicing, main) for _ in range(3)]
    assert seen == [1024] * 3
    assert weigh(nicing, main, 512) is Outcome.APPLIED
    assert (schedattr.nice_of(main.tid), schedattr.nice_of(child.tid)) == (3, 0)
    server.end(child)
    for _ in range(RETRY_PERIODS + 2):
        nicing.mainline.observe(roster([main]))
    assert weigh(nicing, main, 512) is Outcome.APPLIED
    assert (group.weight("server"), schedattr.nice_of(main.tid)) == (512, 0)


def test_a_child_that_is_moved_to_a_group_of_its_own_leaves_both_with_theirs(
    nicing: MainlineStage, server: Server, group: TestGroup
) -> None:
    both = (server.main, server.fork())
    assert weight(nicing, *both) == 1024
    group.enter(both[1].pid, "child")
    for _ in range(2 * RETRY_PERIODS):
        nicing.mainline.observe(roster(both))
    assert [weigh(nicing, one, 2048) for one in both] == [Outcome.APPLIED] * 2
    assert [group.weight(name) for name in ("server", "child")] == [2048, 2048]
    server.end(both[1])


def test_a_child_is_not_born_with_what_we_gave_its_parent(nicing: MainlineStage, server: Server) -> None:
    main, first = server.main, server.fork()
    weight(nicing, main, first)
    assert weigh(nicing, main, 336) is Outcome.APPLIED
    second = server.fork()
    assert schedattr.nice_of(second.tid) == 5
    shown = nicing.mainline.observe(roster([main, first, second])).knobs
    assert [shown[one].weight for one in (main, first, second)] == [336, 1024, 1024]
    assert schedattr.nice_of(second.tid) == 0
    third = server.fork()  # of whom nobody knows at the end
    nicing.mainline.restore()
    assert [schedattr.nice_of(one.tid) for one in (main, first, second, third)] == [0] * 4


@pytest.mark.parametrize("answer", OnForeignWrite)
def test_somebody_who_nices_the_thread_is_answered_as_configured(
    tmp_path: Path, server: Server, answer: OnForeignWrite
) -> None:
    stage = MainlineStage(tmp_path, dry_run=False, own_groups=False, answer=answer, nice=True)
    main, child = server.main, server.fork()
    weight(stage, main, child)
    assert weigh(stage, main, 512) is Outcome.APPLIED
    schedattr.set_nice(main.tid, 7)
    shown = {OnForeignWrite.YIELD: None, OnForeignWrite.REAPPLY: 512, OnForeignWrite.ALERT: 215}[answer]
    assert [weight(stage, main, child) for _ in range(2)] == [shown] * 2
    if answer is OnForeignWrite.ALERT:
        assert weigh(stage, main, 512) is Outcome.APPLIED
    stage.close()
    assert schedattr.nice_of(main.tid) == 7


def test_whoever_was_niced_before_keeps_that(nicing: MainlineStage, server: Server) -> None:
    main, child = server.main, server.fork()
    schedattr.set_nice(child.tid, 10)
    assert (weight(nicing, main, child), weight(nicing, child, main)) == (1024, None)
    schedattr.set_nice(main.tid, 4)  # before the first weight
    assert weigh(nicing, main, 512) is Outcome.REJECTED
    assert weight(nicing, main, child) is None
    nicing.mainline.restore()
    assert [schedattr.nice_of(one.tid) for one in (main, child)] == [4, 10]


def test_a_journal_puts_nice_back_and_no_other_that_has_the_id_later(
    nicing: MainlineStage, server: Server
) -> None:
    main, child = server.main, server.fork()
    weight(nicing, main, child)
    assert [weigh(nicing, one, 512) for one in (main, child)] == [Outcome.APPLIED] * 2
    assert {one.ref.kind for one in nicing.journal.outstanding()} == {NICE}
    before = schedattr.nice_of(os.getpid())
    assert isinstance(nicing.journal, Journal)
    put_all_back(nicing.journal)
    assert [schedattr.nice_of(one.tid) for one in (main, child)] == [0, 0]
    assert schedattr.nice_of(os.getpid()) == before


REUSED = """
import os, subprocess, sys, time
from pathlib import Path
from dasec.linux import schedattr
from dasec.model import Change, Knob
from tests.contract.stage import MainlineStage, roster

stage = MainlineStage(Path(sys.argv[1]), dry_run=False, own_groups=False, bpf=False, nice=True)
first = stage.spawn()
stage.mainline.observe(roster([first]))
stage.mainline.apply([Change(first, Knob.WEIGHT, 1024, 512, "test")])
assert schedattr.nice_of(first.tid) == 3
stage.end(first)
time.sleep(0.05)  # a start time is known to 10 ms
with open("/proc/sys/kernel/ns_last_pid", "w") as file:
    file.write(str(first.pid - 1))
stranger = subprocess.Popen(["sleep", "1000"])
assert stranger.pid == first.pid, (first.pid, stranger.pid)
os.setpriority(os.PRIO_PROCESS, stranger.pid, 3)
if sys.argv[2] == "seen":
    stage.mainline.observe(roster([first]))
stage.close()
print(schedattr.nice_of(stranger.pid))
stranger.kill()
stranger.wait()
"""


@pytest.mark.parametrize("seen", ["seen", "unseen"])
def test_whoever_has_the_id_of_a_child_that_ended_keeps_the_same_nice(
    seen: str, tmp_path: Path, repository: Path
) -> None:
    if not Path("/proc/sys/kernel/ns_last_pid").exists():
        pytest.skip("this kernel does not let one choose the next id")
    program = [sys.executable, "-c", REUSED, str(tmp_path), seen]
    command = ["unshare", "--pid", "--fork", "--mount-proc", *program]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("3\n", "")


TOLD = """
policy = "oracle"
period_ms = 20
[oracle]
tids = [{pid}]
[guard]
enabled = false
[host]
weights = "on"
[[workload]]
name = "server"
cgroup = "{group}"
"""


@pytest.mark.parametrize("killed", [False, True])
def test_a_server_that_forks_all_the_time_is_as_before_when_the_daemon_stops_or_is_killed(
    tmp_path: Path, group: TestGroup, killed: bool
) -> None:
    config = tmp_path / "dasec.toml"
    with subprocess.Popen([sys.executable, "-c", FORKING], stdin=subprocess.PIPE) as server:
        try:
            assert server.stdin is not None
            group.enter(server.pid)
            config.write_text(TOLD.format(group=group.group, pid=server.pid))
            server.stdin.write(b"begin\n")
            server.stdin.flush()
            wait_for(lambda: schedattr.nice_of(server.pid) == 0)
            before = fingerprint([server.pid])
            with Running(tmp_path, config) as daemon:
                wait_for(lambda: schedattr.nice_of(server.pid) != 0)
                if killed:
                    os.kill(daemon.pid, signal.SIGKILL)
                    wait_for(lambda: not differences(before, fingerprint([server.pid])))
                else:
                    daemon.stop()
                    assert differences(before, fingerprint([server.pid])) == ()
            wait_for(lambda: nices(group) == {0})  # the keeper looks for children last
        finally:
            server.kill()
