"""Where the engines run: the machine's own files with the packages laid over them, state in memory, a network
with nothing in it. Processes and cgroups are the machine's.

Its files are reached through /proc/PID/root. All of it goes with the process that holds it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import tempfile
from functools import partial
from pathlib import Path

from guests.engines.packages import tree
from guests.waiting import wait_for

APART = ("unshare", "--mount", "--net", "--propagation", "private")

SCRIPT = r"""
set -e
scratch=${TMPDIR:-/tmp}
exec 3<"$scratch"
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/over /run/lock /run/user /run/systemd
for place in usr etc var/lib; do
    mkdir -p /run/over/$place /run/work/$place
    mount -t overlay overlay /$place \
        -o lowerdir=$1/$place:/$place,upperdir=/run/over/$place,workdir=/run/work/$place
done
# An overlay lies on no overlay: the engines' images get a file system of their own.
for place in docker containerd containers lxc; do
    mkdir -p /var/lib/$place
    mount -t tmpfs -o mode=755 tmpfs /var/lib/$place
done
rmdir /run/systemd # or they ask a systemd that is not there
mkdir -p "$scratch" # which may have been below /run; tests and engines hand each other files there
mount --no-canonicalize --bind /proc/self/fd/3 "$scratch"
exec 3<&-
ip link set lo up 2>/dev/null || true
touch /run/ready
exec sleep infinity
"""


GROUPS = ("docker", "libpod_parent", "kubepods", "k8s.io", "lxc.*", "system.slice")
"""What the engines make at the top of each hierarchy, and leave behind."""


class Place:
    """The namespaces live as long as the object, and so do the programs that were started in them."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self._groups = _top_groups()
        with log.open("wb") as said:
            self._holder = subprocess.Popen(
                [*APART, "bash", "-c", SCRIPT, "-", str(tree())],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
        self.root = Path(f"/proc/{self._holder.pid}/root")
        ready = self.root / "run/ready"
        wait_for(lambda: ready.is_file() or self._holder.poll() is not None)
        if self._holder.poll() is not None:
            raise RuntimeError(f"no place for engines: {log.read_text()}")
        self._started: list[subprocess.Popen[bytes]] = []

    def inside(self, *command: str) -> list[str]:
        """The command that sees what the engines see."""
        spaces = f"/proc/{self._holder.pid}/ns"
        return ["nsenter", f"--mount={spaces}/mnt", f"--net={spaces}/net", *command]

    def files(self) -> list[str]:
        """What a command begins with that sees the engines' files, and the machine's network."""
        return ["nsenter", f"--mount=/proc/{self._holder.pid}/ns/mnt"]

    def processes(self) -> set[int]:
        """Engines, monitors, containers: all in this network but who holds it."""
        network = (self.root.parent / "ns/net").stat().st_ino
        return _those_in(network) - {self._holder.pid}

    def say(self, *command: str) -> str:
        """What an engine's program says to this. RuntimeError if it fails."""
        # To files: what is started may keep a pipe open.
        with self.log.open("ab") as log, tempfile.TemporaryFile() as answer:
            done = subprocess.run(
                self.inside(*command),
                stdin=subprocess.DEVNULL,
                stdout=answer,
                stderr=log,
                preexec_fn=_not_niced,
                check=False,
            )
            answer.seek(0)
            said = answer.read().decode().strip()
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {self.log.read_text()[-2000:]}")
        return said

    def answers(self, *command: str) -> bool:
        """Does it succeed?"""
        done = subprocess.run(
            self.inside(*command), stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        return done.returncode == 0

    def spawn(self, *command: str) -> subprocess.Popen[bytes]:
        """A program that goes on, in a process group of its own."""
        with self.log.open("ab") as said:
            started = subprocess.Popen(
                self.inside(*command),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                preexec_fn=_not_niced,
                process_group=0,
            )
        self._started.append(started)
        return started

    def close(self) -> None:
        """End everybody who is in this network: engines, monitors, containers. Remove their groups."""
        for state in (each for top in _top_groups() - self._groups for each in top.rglob("freezer.state")):
            state.write_text("THAWED")  # who is paused does not end
        wait_for(lambda: not _end(self.processes()))
        self._holder.kill()
        for each in (self._holder, *self._started):
            each.wait()
        for top in _top_groups() - self._groups:
            for group in (*sorted(top.glob("**/"), reverse=True), top):
                with contextlib.suppress(FileNotFoundError):
                    wait_for(partial(_removed, group))


def _not_niced() -> None:
    """Whoever runs the tests may be; a container's threads would have no weights then."""
    os.setpriority(os.PRIO_PROCESS, 0, 0)


def _those_in(network: int) -> set[int]:
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (folder / "ns/net").stat().st_ino == network:
                found.add(int(folder.name))
    return found


def _end(pids: set[int]) -> set[int]:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return pids


def _top_groups() -> set[Path]:
    top = Path("/sys/fs/cgroup")
    return {group for name in GROUPS for where in (name, f"*/{name}") for group in top.glob(where)}


def _removed(group: Path) -> bool:
    try:
        group.rmdir()
    except OSError as error:
        if error.errno == errno.EBUSY:
            return False  # its last process is still on its way out
        raise
    return True
