"""A group and a cpuset for a user who means harm, an honest workload beside, the real daemon over both."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dasec.lab.kit.process import free_port
from dasec.linux import cgroupfs, procfs, schedattr
from dasec.linux.errors import ThreadGone
from dasec.safety.fingerprint import Fingerprint, differences, fingerprint
from guests.waiting import PATIENCE_S, wait_for
from tests.chaos.test_chaos import SHUFFLE
from tests.host.running import Running, burner
from tests.kin import keeper_of

from . import user

USER = Path(__file__).with_name("user.py")
HONEST_THREADS = 8
HALF = 50_000
COMMANDS = (("status",), ("explain", "villain"), ("explain", "honest"), ("verify",), ("top", "--times", "1"))


@dataclass
class Findings:
    """What was done, what it cost, and what was wrong."""

    seconds: float
    deeds: dict[str, int] = field(default_factory=dict)
    cpu_percent: dict[str, float] = field(default_factory=dict)
    writes: dict[str, int] = field(default_factory=dict)
    honest_writes: int = 0
    longest_look_ms: int = 0
    memory_kib: int = 0
    log_lines: int = 0
    wrong: list[str] = field(default_factory=list)


class Delegated:
    """A directory of a cgroup v1 hierarchy that belongs to somebody else."""

    def __init__(self, controller: str, parent: str) -> None:
        self.hierarchy = cgroupfs.find_hierarchy(controller=controller)
        self.parent = parent
        self.group = f"{parent}/villain"
        self.directory = self.hierarchy.directory(self.group)
        for group in (parent, self.group):
            with contextlib.suppress(FileExistsError):
                os.mkdir(self.hierarchy.directory(group))
        for name in ("", "/tasks", "/cgroup.procs"):
            os.chown(self.directory + name, user.UID, user.UID)

    def write(self, group: str, name: str, text: str) -> None:
        Path(self.hierarchy.directory(group), name).write_text(text)

    def pids(self) -> list[int]:
        """Whoever is in it or below, at any depth."""
        found = []
        for at in _open_below(self.directory):
            with contextlib.suppress(OSError):
                procs = os.open("cgroup.procs", os.O_RDONLY, dir_fd=at)
                with open(procs, "rb") as file:
                    found += [int(line) for line in file]
        return found

    def close(self) -> None:
        """Remove it and all below, however deep, whoever is in there."""
        remove_tree(self.directory, self.pids)
        with contextlib.suppress(OSError):
            os.rmdir(self.hierarchy.directory(self.parent))


def remove_tree(top: str, pids: Callable[[], Iterable[int]] = tuple) -> None:
    """Groups, however deep; these processes are killed first."""

    def removed() -> bool:
        for pid in pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for at in _open_below(top):
            for name in _directories(at):
                with contextlib.suppress(OSError):
                    os.rmdir(name, dir_fd=at)
        with contextlib.suppress(OSError):
            os.rmdir(top)
        return not os.path.exists(top)

    wait_for(removed)


def _directories(at: int) -> list[str]:
    with os.scandir(at) as entries:
        return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]


def _open_below(top: str) -> Iterator[int]:
    """Every directory of a tree, inner ones first, each open until the next is asked for."""
    at = os.open(top, os.O_RDONLY)
    kept = [(at, iter(_directories(at)))]
    while kept:
        at, names = kept[-1]
        name = next(names, None)
        if name is None:
            yield at
            os.close(at)
            kept.pop()
            continue
        with contextlib.suppress(OSError):
            inner = os.open(name, os.O_RDONLY, dir_fd=at)
            kept.append((inner, iter(_directories(inner))))


class World:
    """Both workloads, from their start to their end."""

    def __init__(self, seed: int, seconds: float) -> None:
        parent = f"/dasec-test-hostile-{os.getpid()}"
        self._stack = contextlib.ExitStack()
        self.port = free_port()
        self.cpuset = self._stack.enter_context(contextlib.closing(Delegated("cpuset", parent)))
        for group in (parent, self.cpuset.group):
            self.cpuset.write(group, "cpuset.cpus", cgroup_text(self.cpuset, "cpuset.cpus"))
            self.cpuset.write(group, "cpuset.mems", cgroup_text(self.cpuset, "cpuset.mems"))
        self.cpu = self._stack.enter_context(contextlib.closing(Delegated("cpu", parent)))
        self.cpu.write(self.cpu.group, "cpu.cfs_quota_us", str(HALF))
        self.honest_group = f"{parent}/honest"
        os.mkdir(self.cpu.hierarchy.directory(self.honest_group))
        self._stack.callback(self._remove_honest)
        self.honest = self._stack.enter_context(burner(HONEST_THREADS))
        self.cpu.write(self.honest_group, "cgroup.procs", str(self.honest.pid))
        self.before = fingerprint([self.honest.pid])
        arguments = [str(seed), str(seconds), self.cpu.directory, self.cpuset.directory, str(self.port)]
        self.villain = subprocess.Popen(
            [sys.executable, "-S", str(USER), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=self._enter,
        )
        self._stack.callback(self.villain.kill)

    def _enter(self) -> None:
        for place in (self.cpu, self.cpuset):
            place.write(place.group, "cgroup.procs", str(os.getpid()))

    def _remove_honest(self) -> None:
        wait_for(lambda: cgroupfs.remove_group(self.cpu.hierarchy.directory(self.honest_group)))

    def close(self) -> None:
        """Nothing is left of it."""
        self._stack.close()

    def configuration(self, policy: str) -> str:
        return (
            f'policy = "{policy}"\n[host]\nown_cgroups = true\nweights = "on"\n'
            f"[metrics]\nport = {self.port}\ninterval_s = 1\n"
            f'[[workload]]\nname = "honest"\ncgroup = "{self.honest_group}"\n'
            f'[[workload]]\nname = "villain"\ncgroup = "{self.cpu.group}"\n'
        )

    def has_done_all(self) -> bool:
        """The villain, all that he can do: on a busy machine some of it takes him long."""
        assert self.villain.stdin is not None
        assert self.villain.stdout is not None
        self.villain.stdin.write("\n")
        self.villain.stdin.flush()
        return all(json.loads(self.villain.stdout.readline()).values())

    def freeze(self) -> dict[str, int]:
        """The villain does nothing any more; what he has done."""
        assert self.villain.stdin is not None
        assert self.villain.stdout is not None
        self.villain.stdin.close()
        deeds: dict[str, int] = json.loads(self.villain.stdout.readline())
        stopped: set[int] = set()
        while new := set(self.cpu.pids()) - stopped:
            for pid in new:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
            stopped |= new
        return deeds

    def wrong(self) -> list[str]:
        """What is not as it would be without the daemon, after `freeze`."""
        honest = [
            f"honest: {line}" for line in threads_that_differ(self.before, fingerprint([self.honest.pid]))
        ]
        return [*honest, *self._wrong_threads(), *self._wrong_groups()]

    def _wrong_threads(self) -> Iterator[str]:
        default_ns = schedattr.default_slice_ns()
        pids = self.cpu.pids()
        maskers = {pid for pid in pids if self._sets_masks(pid)}
        for vcpu, has in fingerprint(pids).threads.items():
            if has["slice_ns"] not in (default_ns, *user.SLICES_NS):
                yield f"thread {vcpu.tid}: slice {has['slice_ns']}"
            with contextlib.suppress(ThreadGone):
                whole = tuple(sorted(cgroupfs.cpuset_of(vcpu.pid, vcpu.tid).cpus))
                if vcpu.pid not in maskers and has["affinity"] != whole:
                    yield f"thread {vcpu.tid}: mask {has['affinity']}, its cpuset has {whole}"

    def _sets_masks(self, pid: int) -> bool:
        with contextlib.suppress(OSError):
            return Path(f"/proc/{pid}/comm").read_bytes() == b"hostile-5\n"
        return True

    def _wrong_groups(self) -> Iterator[str]:
        for at in _open_below(self.cpu.directory):
            with (
                contextlib.suppress(OSError),
                open(os.open("cpu.shares", os.O_RDONLY, dir_fd=at), "rb") as file,
            ):
                weight = int(file.read())
                if weight not in (1024, user.WEIGHT):
                    yield f"a group of the villain's weighs {weight}"
            yield from (f"group {name} is left" for name in _directories(at) if _is_ours(name))


def _is_ours(name: str) -> bool:
    return name.startswith("dasec-") and name[6:].isdecimal()


def threads_that_differ(before: Fingerprint, after: Fingerprint) -> tuple[str, ...]:
    return differences(before._replace(groups={}), after._replace(groups={}))


def cgroup_text(place: Delegated, name: str) -> str:
    """What the top group has."""
    return Path(place.hierarchy.mount, name).read_text().strip()


def unprintable(text: str) -> list[str]:
    """The lines of a command that would do something to a terminal."""
    return [repr(line) for line in text.split("\n") if not line.isprintable()]


class Watch:
    """The daemon, as it lives in such a world: what it costs, and whether it sees to the honest workload."""

    def __init__(self, place: Path, world: World, found: Findings) -> None:
        self.place, self.world, self.found = place, world, found
        self.config = place / "hostile.toml"
        self.record = place / "record"
        self.config.write_text(world.configuration("critical"))

    def live(self, chance: random.Random) -> None:
        """Half of the time under the default policy, half under one that writes as much as it can."""
        with Running(self.place, self.config, str(SHUFFLE), record=self.record) as daemon:
            keeper = keeper_of(daemon.pid)
            for policy in ("critical", "shuffle"):
                self.config.write_text(self.world.configuration(policy))
                os.kill(daemon.pid, signal.SIGHUP)
                wait_for(lambda policy=policy: daemon.status()["policy"] == policy)  # type: ignore[misc]
                self._phase(daemon, policy, chance)
            if keeper_of(daemon.pid) != keeper:
                self.found.wrong.append("the keeper died")
            self.found.honest_writes = honest_writes(self.record, self.world.honest.pid)
            daemon.stop()
            self.found.deeds = self.world.freeze()
            self.found.log_lines = daemon.log().count("\n")
            self.found.wrong += unprintable(daemon.log().removesuffix("\n"))
            self.found.wrong += self.world.wrong()
            self._ask(daemon, ("verify",), ("restore",))

    def _phase(self, daemon: Running, policy: str, chance: random.Random) -> None:
        began_s, ran = time.monotonic(), _ran_ns(daemon.pid)
        written = daemon.status()["outcomes"].get("applied", 0)
        until_s = began_s + self.found.seconds / 2
        patience_s = until_s + PATIENCE_S
        while time.monotonic() < until_s or not (self.world.has_done_all() or time.monotonic() > patience_s):
            time.sleep(1)
            now = daemon.status()
            self.found.longest_look_ms = max(self.found.longest_look_ms, now["look_ms"])
            threads = {one["name"]: one["vcpus"] for one in now["workloads"]}
            if threads["honest"] != HONEST_THREADS:
                self.found.wrong.append(
                    f"{policy}: of the honest workload {threads['honest']} threads are managed"
                )
            if chance.random() < 0.1:
                self._ask(daemon, chance.choice(COMMANDS))
        passed_ns, now_ran = 1e9 * (time.monotonic() - began_s), _ran_ns(daemon.pid)
        for is_loop, what in ((True, "loop"), (False, "metrics")):
            percent = 100 * (now_ran[is_loop] - ran[is_loop]) / passed_ns
            self.found.cpu_percent[f"{policy}, {what}"] = round(percent, 2)
        self.found.writes[policy] = daemon.status()["outcomes"].get("applied", 0) - written
        self.found.memory_kib = _memory_kib(daemon.pid)

    def _ask(self, daemon: Running, *commands: tuple[str, ...]) -> None:
        for command in commands:
            said = subprocess.run(
                [sys.executable, "-m", "dasec", *command, "--directory", str(daemon.state)],
                capture_output=True,
            )
            text = (said.stdout + said.stderr).decode()
            self.found.wrong += [f"{command}: {line}" for line in unprintable(text)]
            if "Traceback" in text:
                self.found.wrong.append(f"{command}: {text}")


def _ran_ns(pid: int) -> dict[bool, int]:
    """CPU time of the loop (True), and of the thread that serves metrics."""
    ran = dict.fromkeys((True, False), 0)
    for tid in procfs.thread_ids(pid):
        with contextlib.suppress(ThreadGone):
            line = procfs.read_bytes(f"/proc/{pid}/task/{tid}/schedstat")
            ran[tid == pid] += procfs.parse_schedstat(line)[0]
    return ran


def _memory_kib(pid: int) -> int:
    status = procfs.read_bytes(f"/proc/{pid}/status")
    return int(status.partition(b"\nVmRSS:")[2].split()[0])


def honest_writes(record: Path, pid: int) -> int:
    """How many writes to threads of this process the record has, of all its files."""
    written = 0
    for file in record.parent.glob(f"{record.name}*"):
        order: list[tuple[int, ...]] = []
        for line in file.read_bytes().split(b"\n")[:-1]:
            row = json.loads(line)
            if "workloads" in row:
                order = [tuple(vcpu[:3]) for one in row["workloads"] for vcpu in one["vcpus"]]
            for ref, _, _, _, _, outcome, *_ in row.get("results", ()):
                who = order[ref] if isinstance(ref, int) else ref
                written += who[0] == pid and outcome == "applied"
    return written


def run(seconds: float, place: Path, seed: int) -> Findings:
    """The whole story."""
    found = Findings(seconds)
    world = World(seed, seconds * 10 + 2 * PATIENCE_S)
    try:
        Watch(place, world, found).live(random.Random(seed))
    finally:
        world.close()
    return found
