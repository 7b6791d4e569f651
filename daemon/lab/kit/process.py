"""Processes of a run: started in their place, waited for, told when to begin, ended."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from .driver import Place, Role
from .errors import failure
from .tree import Tree

POLL_S = 0.02
READY_PATIENCE_S = 60.0
"""For a program to come up beside others that compute."""

KILL_PATIENCE_S = 10.0

ENTER = 'echo $$ >"$0" && exec "$@"'
"""The shell enters the group and becomes the program: no instant outside the group that a cleaner
would look into."""

HOLD = 'read -r wait && sleep "$wait" && exec "$@"'
"""The program that it becomes has the same process id: a policy may be attached before it begins."""


def spawn(command: Sequence[str], log: Path, stdin: int = subprocess.PIPE) -> subprocess.Popen[bytes]:
    """Its output goes to the end of `log`. It gets no Ctrl-C of ours: we end it."""
    with log.open("ab") as output:
        return subprocess.Popen(
            command, stdin=stdin, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )


def entered(tree: Tree, group: str, command: Sequence[str]) -> tuple[str, ...]:
    """The command, inside a group from its first instruction."""
    return ("/bin/sh", "-c", ENTER, str(tree.entry(group)), *command)


def start(tree: Tree, group: str, command: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    """Run a command inside a group that nobody tells anything."""
    return spawn(entered(tree, group, command), log, subprocess.DEVNULL)


def held(command: Sequence[str]) -> tuple[str, ...]:
    """The command, but not before its standard input says how many seconds to wait."""
    return ("/bin/sh", "-c", HOLD, "held", *command)


def within(folder: Path, environment: Mapping[str, str], command: Sequence[str]) -> tuple[str, ...]:
    """The command in this folder, with these variables. By its path: busybox's shell has an env of its own,
    which changes no folder."""
    variables = (f"{name}={text}" for name, text in environment.items())
    return (shutil.which("env") or "env", "-C", str(folder), *variables, *command)


def last_line(log: Path) -> str:
    """What a process said last."""
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() if log.exists() else []
    return lines[-1] if lines else "no message"


def wait_until(condition: Callable[[], bool], what: str, patience_s: float) -> None:
    """Poll; Refusal if it takes too long."""
    deadline = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > deadline:
            raise failure(f"{what}: not within {patience_s:g} s: is the machine overloaded?")
        time.sleep(POLL_S)


def sleep_until(monotonic_ns: int, tick: Callable[[], None]) -> None:
    """Sleep, with a tick now and then so that a display can go on."""
    while (left_s := (monotonic_ns - time.monotonic_ns()) / 1e9) > 0:
        tick()
        time.sleep(min(left_s, 0.5))


def ensure_alive(process: subprocess.Popen[bytes], name: str, log: Path, end_s: float | None = None) -> None:
    """Refusal with its last words if a process ended early: with an error, or before `end_s` (monotonic);
    without, at all."""
    if process.poll() is not None and (process.returncode or end_s is None or time.monotonic() < end_s):
        raise failure(f"{name}: ended early, exit status {process.returncode}: {last_line(log)}")


@dataclass(frozen=True, slots=True)
class Child:
    """A process of an application, and all that it starts."""

    name: str
    place: Place
    process: subprocess.Popen[bytes]
    log: Path

    @classmethod
    def start(
        cls,
        name: str,
        place: Place,
        command: Sequence[str],
        log: Path,
        role: Role = Role.WORKLOAD,
        serves: Sequence[int] = (),
    ) -> Child:
        """In that place."""
        return cls(name, place, place.start(command, log, role, serves), log)

    def pids(self) -> tuple[int, ...]:
        """Its living processes."""
        return self.place.pids(self.process)

    def tell(self, line: str) -> None:
        """One line on its standard input, which is closed. A process that has gone is found out later."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(f"{line}\n".encode())
            self.process.stdin.close()

    def release(self, start_ns: int) -> None:
        """Lets a held command begin at this CLOCK_MONOTONIC time."""
        self.tell(f"{max(0.0, (start_ns - time.monotonic_ns()) / 1e9):.4f}")

    def ensure_alive(self, end_s: float | None = None) -> None:
        """Refusal, with its last words, if it has ended before that time."""
        ensure_alive(self.process, self.name, self.log, end_s)

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Polls. Refusal if it ends before, or takes too long."""

        def there() -> bool:
            self.ensure_alive()
            return condition()

        wait_until(there, f"{self.name}: {what}", READY_PATIENCE_S)

    def wait(self, patience_s: float) -> int | None:
        """Its exit status; None if it still runs then."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.process.wait(max(0.0, patience_s))
        return None

    def wait_well(self, patience_s: float, statuses: tuple[int, ...] = (0,)) -> None:
        """Refusal unless it ends in time and with one of these exit statuses."""
        status = self.wait(patience_s)
        if status is None:
            raise failure(f"{self.name}: does not end within {patience_s:.0f} s: is the machine overloaded?")
        if status not in statuses:
            raise failure(f"{self.name}: exit status {status}: {last_line(self.log)}")

    def terminate(self) -> None:
        """Asks it and all below it to end."""
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    def kill(self) -> None:
        """Ends by force it, all below it and what it left behind in its session; returns when they are gone.
        Idempotent."""
        deadline = time.monotonic() + KILL_PATIENCE_S
        while (left := {*self._below(), *in_session(self.process.pid)}) and time.monotonic() < deadline:
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.process.poll()  # collects it
            time.sleep(POLL_S)
        if self.process.stdin:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()
        self.process.wait()

    def _below(self) -> tuple[int, ...]:
        """Not once it has been waited for: somebody else may have its number then."""
        return (*self.pids(), self.process.pid) if self.process.poll() is None else ()


def descendants(pid: int, proc: Path = Path("/proc")) -> Iterator[int]:
    """The process and all below it, as far as they live."""
    children = _looked.get()
    if children is None and _has_lists(pid, proc):
        return _below(pid, lambda parent: _listed(parent, proc))
    known = _children(proc) if children is None else children
    return _below(pid, lambda parent: known.get(parent, ()))


@contextlib.contextmanager
def one_look(proc: Path = Path("/proc")) -> Iterator[None]:
    """Inside, who is below whom is as it was at the beginning. Without the kernel's lists each question costs
    a look at all processes: for sixteen programs 2 s of a guest's CPU, when 2.5 s were to be measured."""
    token = _looked.set(_children(proc))
    try:
        yield
    finally:
        _looked.reset(token)


_looked: ContextVar[Mapping[int, Sequence[int]] | None] = ContextVar("looked", default=None)


def _children(proc: Path) -> Mapping[int, Sequence[int]]:
    """Of every process that has any."""
    children: dict[int, list[int]] = {}
    for one, (_, parent, *_) in _stats(proc):
        children.setdefault(int(parent), []).append(one)
    return children


def _has_lists(pid: int, proc: Path) -> bool:
    tasks = _tasks(pid, proc)
    return not tasks or (tasks[0] / "children").exists()


def _below(pid: int, children: Callable[[int], Iterable[int]]) -> Iterator[int]:
    yield pid
    for child in children(pid):
        yield from _below(child, children)


def _tasks(pid: int, proc: Path) -> list[Path]:
    return [proc / str(pid) / "task" / str(tid) for _, tid in sorted(thread_ids([pid], proc))]


def _listed(pid: int, proc: Path) -> Iterator[int]:
    """By the kernel's own lists, which need CONFIG_PROC_CHILDREN."""
    for task in _tasks(pid, proc):
        with contextlib.suppress(OSError):
            yield from map(int, (task / "children").read_text(encoding="ascii").split())


def _stats(proc: Path) -> Iterator[tuple[int, list[str]]]:
    """Each process, with what its stat file says behind its name."""
    for folder in proc.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            yield int(folder.name), (folder / "stat").read_text().rpartition(")")[2].split()


def in_session(leader: int, proc: Path = Path("/proc")) -> tuple[int, ...]:
    """The processes of a session that still live; a zombie does not."""
    return tuple(
        pid for pid, (state, _, _, session, *_) in _stats(proc) if int(session) == leader and state != "Z"
    )


def thread_ids(pids: Iterable[int], proc: Path = Path("/proc")) -> list[tuple[int, int]]:
    """Process and thread of each; a process that has ended, or ends meanwhile, has none."""
    found: list[tuple[int, int]] = []
    for pid in pids:
        with contextlib.suppress(OSError):
            found += [(pid, int(task.name)) for task in (proc / str(pid) / "task").iterdir()]
    return found


def name_of(pid: int, tid: int) -> str:
    """As the kernel has it. Raises OSError for a thread that has ended."""
    return Path(f"/proc/{pid}/task/{tid}/comm").read_text(encoding="utf-8", errors="replace").strip()


def free_port() -> int:
    """A TCP port on the loopback that nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def read_json(path: Path) -> dict[str, object]:
    """A file that one of our own processes wrote."""
    value = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(value, dict):
        raise failure(f"{path.name}: holds no JSON object")
    return value
