"""The real daemon, killed at random points, again and again: afterwards the host is exactly as it was.

Workloads live on from round to round, and start and end threads and processes all the time,
while a third party changes knobs, too; beside busy loops as well, on a machine that has no time for
anybody. `DASEC_CHAOS_ROUNDS` sets the number of rounds, `DASEC_CHAOS_WAYS` which of `WAYS` (names with
commas; default all), and `DASEC_CHAOS_SEED` repeats a run that failed (its decisions: the kernel's
timing is its own).
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from dasec.linux import procfs
from dasec.linux.errors import ThreadGone
from dasec.safety.journal.journal import DIRECTORY, peek
from guests.waiting import PATIENCE_S
from tests.kin import keeper_of
from tests.stopwatch import Stopwatch

from .arena import Arena

pytestmark = [pytest.mark.host, pytest.mark.alone, pytest.mark.timeout(0)]

ROUNDS = int(os.environ.get("DASEC_CHAOS_ROUNDS", "24"))
LONG = int(os.environ.get("DASEC_CHAOS_ROUNDS", "1000"))
SEED = int(os.environ.get("DASEC_CHAOS_SEED", "1"))
ONLY = os.environ.get("DASEC_CHAOS_WAYS", "")
BESIDE_LOAD = max(1, ROUNDS // 4)
BUSY_LOOPS, MANY_BUSY_LOOPS = 8, 20
LANES = 2
PROGRESS_EVERY_S = 15.0
RESTORED_WITHIN_S = 1.0
PERIOD_MS = 10
SHUFFLE = Path(__file__).with_name("shuffle.py")

OWN_RUN = f'mkdir -p {DIRECTORY} && mount -t tmpfs -o mode=0700 tmpfs {DIRECTORY} && exec "$@"'
IN_A_LANE = ("unshare", "--mount", "--propagation", "private", "sh", "-c", OWN_RUN, "lane")
"""One daemon a host: each lane is one as far as its lock goes. All of it becomes the daemon by exec."""

CONFIGURATION = """\
period_ms = {period_ms}
policy = "{policy}"
[guard]
enabled = false
[host]
own_cgroups = {own}
weights = "{weights}"
[bandwidth]
caps = true
burst = true
"""


class Round:
    """One life of the daemon, and the end of it."""

    def __init__(self, arena: Arena, place: Path, chance: random.Random, policy: str) -> None:
        self.arena = arena
        self.place = place
        self.chance = chance
        self.program = [str(SHUFFLE)] if policy == "shuffle" else ["-m", "dasec"]
        self.file = place / "chaos.toml"
        # By `auto` the probe computes for a second or two: it is killed there, too, but not only there.
        weights = "on" if policy == "shuffle" else "auto"
        own = "true" if chance.random() < 0.7 else "false"  # then threads that share a group are niced
        head = CONFIGURATION.format(period_ms=PERIOD_MS, policy=policy, weights=weights, own=own)
        self.file.write_text(head + arena.configuration())
        self.directory = place / "state"
        self.said = place / "said"
        with self.said.open("wb") as said:
            self.daemon = subprocess.Popen(self._command("run", "--config", str(self.file)), stderr=said)
        self.changed = False
        self.restore_cpu_s = 0.0
        # `dasec` may choose the very mask that the third party chose; `shuffle` pins to another core.
        self.own_masks = policy == "shuffle"

    def await_work(self) -> None:
        """Until the daemon has changed something. Without the time for which it had no core: at the lowest
        priority beside 30 others, a daemon of a soak had none for minutes."""
        watch = Stopwatch(self.daemon.pid)
        while watch.seconds() < PATIENCE_S:
            if self.arena.wrong():
                self.changed = True
                return
            assert self.daemon.poll() is None, self.said.read_text()
            time.sleep(0.01)
        raise AssertionError(f"the daemon changes nothing: {self.said.read_text()}")

    def meddle(self) -> None:
        """The third party has its way, like a manager that writes what it wants until it stays."""
        ref = self.arena.meddle(self.chance, masks=self.own_masks)
        if ref is not None and self.chance.random() < 0.7:
            time.sleep(self.chance.uniform(0.0, 0.1))

    def kill(self) -> None:
        self.daemon.kill()
        self.daemon.wait()
        self.arena.settle_meddling()

    def kill_keeper(self) -> None:
        pid = self.keeper()
        if pid is not None:
            os.kill(pid, signal.SIGKILL)

    def keeper(self) -> int | None:
        """The keeper's process, if the daemon has got as far as to have one."""
        return keeper_of(self.daemon.pid)

    def command(self, *arguments: str) -> None:
        """One more command of the user's, which must succeed."""
        said = self.place / "command"
        with said.open("wb") as file:
            running = subprocess.Popen(self._command(*arguments), stdout=file, stderr=file)
            _, status, used = os.wait4(running.pid, 0)
        running.returncode = os.waitstatus_to_exitcode(status)
        if arguments == ("restore",):
            self.restore_cpu_s += used.ru_utime + used.ru_stime
        if running.returncode != 0:
            raise AssertionError(f"dasec {' '.join(arguments)}: {said.read_text()}")

    def await_restored_in(self, case: str) -> float:
        """The CPU time of whoever restores, until everything is as it must be and nothing is left in the
        journal; of `dasec restore` with that of its start. How long that takes is the machine's business.

        Once nobody is left who could restore, nothing may be wrong any more.
        """
        keepers = CpuTimes(self._keepers())
        somebody_left = True
        while wrong := self.arena.wrong() or self._outstanding():
            took_s = keepers.seconds() + self.restore_cpu_s
            if took_s > RESTORED_WITHIN_S or not somebody_left:
                raise AssertionError(f"{case}: after {took_s:.2f} s: {wrong}\n{self.said.read_text()}")
            somebody_left = bool(self._keepers())
            time.sleep(0.005)
        return keepers.seconds() + self.restore_cpu_s

    def _keepers(self) -> list[int]:
        """The processes that work in our directory now that the daemon is gone."""
        name = os.fsencode(self.directory)
        return [pid for pid in procfs.process_ids() if name in _command_line(pid)]

    def _outstanding(self) -> list[str]:
        try:
            return [str(ref) for ref in peek(self.directory)[0].held]
        except FileNotFoundError:
            return []

    def _command(self, *arguments: str) -> list[str]:
        return [*IN_A_LANE, sys.executable, *self.program, *arguments, "--directory", str(self.directory)]


class CpuTimes:
    """What processes use from now on; of one that has ended, what was seen last."""

    def __init__(self, pids: Sequence[int]) -> None:
        self._before = {pid: cpu_s(pid) for pid in pids}
        self._after = dict(self._before)

    def seconds(self) -> float:
        self._after = {pid: cpu_s(pid) or last for pid, last in self._after.items()}
        return sum(self._after.values()) - sum(self._before.values())


def cpu_s(pid: int) -> float:
    """CPU time of a process with one thread; 0 if it is gone."""
    try:
        return procfs.parse_schedstat(procfs.read_bytes(f"/proc/{pid}/schedstat"))[0] / 1e9
    except ThreadGone:
        return 0.0


@contextmanager
def busy_machine(loops: int) -> Iterator[None]:
    """So many processes that always compute, and end with this one."""
    program = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n  for _ in range(99999): pass"
    with ExitStack() as ends:
        for _ in range(loops):
            one = subprocess.Popen([sys.executable, "-S", "-c", program])
            ends.callback(one.wait)
            ends.callback(one.kill)
        yield


def _command_line(pid: int) -> list[bytes]:
    try:
        return procfs.read_bytes(f"/proc/{pid}/cmdline").split(b"\0")
    except ThreadGone:
        return []


def killed_early(one: Round) -> None:
    """While it reads its configuration, opens the journal, starts its keeper, sees its first period."""
    time.sleep(one.chance.uniform(0.0, 0.7))
    one.kill()


def killed_at_work(one: Round) -> None:
    one.await_work()
    one.meddle()
    time.sleep(one.chance.uniform(0.0, 0.15))
    one.kill()


def killed_in_an_orderly_stop(one: Round) -> None:
    one.await_work()
    one.daemon.terminate()
    time.sleep(one.chance.uniform(0.0, 0.04))
    one.kill()


def killed_with_its_keeper(one: Round) -> None:
    """Nobody is left; somebody changes a knob; `dasec restore` puts the others back."""
    one.await_work()
    one.meddle()
    one.kill_keeper()
    one.kill()
    one.meddle()
    one.command("restore")


def killed_and_then_its_keeper_at_work(one: Round) -> None:
    one.await_work()
    keeper = one.keeper()
    one.kill()
    time.sleep(one.chance.uniform(0.0, 0.02))
    if keeper is not None and procfs.thread_ids(keeper):
        os.kill(keeper, signal.SIGKILL)
    one.command("restore")


def killed_with_its_keeper_and_started_again(one: Round) -> None:
    """The next daemon puts back what it finds before it begins, and its own at its end."""
    one.await_work()
    one.kill_keeper()
    one.kill()
    one.command("run", "--config", str(one.file), "--periods", "3")


WAYS = (
    (killed_early, 8),
    (killed_at_work, 6),
    (killed_in_an_orderly_stop, 2),
    (killed_with_its_keeper, 1),
    (killed_and_then_its_keeper_at_work, 1),
    (killed_with_its_keeper_and_started_again, 1),
)


class Lane:
    """One arena and its rounds. Lanes run side by side, so that one kills while another starts."""

    def __init__(self, number: int, rounds: int, place: Path) -> None:
        self.seed = SEED * 100 + number
        self.rounds = rounds
        self.place = place / str(number)
        self.place.mkdir()
        self.done = self.changed = 0
        self.slowest_s = 0.0

    def run(self, stop: threading.Event) -> None:
        chance = random.Random(self.seed)
        ways = [
            way for way, weight in WAYS for _ in range(weight) if not ONLY or way.__name__ in ONLY.split(",")
        ]
        arena = Arena(self.seed)
        try:
            for number in range(self.rounds):
                if stop.is_set():
                    return
                self._round(arena, number, chance.choice(ways), chance)
        except BaseException:
            stop.set()
            raise
        finally:
            arena.close()

    def _round(self, arena: Arena, number: int, way: Callable[[Round], None], chance: random.Random) -> None:
        policy = "dasec" if number % 4 == 0 else "shuffle"
        case = f"round {number}, {way.__name__}, policy {policy}: repeat with DASEC_CHAOS_SEED={SEED}"
        assert arena.wrong() == [], f"before {case}"
        one = Round(arena, self.place, chance, policy)
        way(one)
        self.slowest_s = max(self.slowest_s, one.await_restored_in(case))
        self.changed += one.changed
        self.done += 1
        arena.stop_meddling()


def test_however_it_is_killed_the_host_is_exactly_as_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kill_again_and_again(ROUNDS, tmp_path, capsys)


def test_nor_does_a_machine_that_has_no_time_for_anybody_keep_anything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with busy_machine(BUSY_LOOPS):
        kill_again_and_again(BESIDE_LOAD, tmp_path, capsys)


@pytest.mark.slow
def test_the_same_for_longer_on_a_machine_that_has_no_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with busy_machine(MANY_BUSY_LOOPS):
        kill_again_and_again(LONG // 4, tmp_path, capsys)


@pytest.mark.slow
def test_the_same_for_longer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kill_again_and_again(LONG, tmp_path, capsys)


def kill_again_and_again(rounds: int, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lanes = [Lane(number, rounds // LANES, place) for number in range(LANES)]
    total = sum(lane.rounds for lane in lanes)
    stop = threading.Event()
    with ThreadPoolExecutor(LANES) as pool:
        futures = [pool.submit(lane.run, stop) for lane in lanes]
        while wait(futures, timeout=PROGRESS_EVERY_S).done != set(futures):
            tell(lanes, total, capsys)
    for future in futures:
        future.result()
    tell(lanes, total, capsys)
    assert sum(lane.changed for lane in lanes) > total // 4, "the daemon had hardly ever changed anything"


def tell(lanes: Sequence[Lane], total: int, capsys: pytest.CaptureFixture[str]) -> None:
    done, slowest_s = sum(lane.done for lane in lanes), max(lane.slowest_s for lane in lanes)
    with capsys.disabled():
        print(
            f"\nchaos: round {done} of {total}: slowest restore {slowest_s * 1000:.0f} ms of CPU time",
            end="",
            flush=True,
        )
