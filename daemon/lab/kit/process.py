"""Starting the demo's processes inside their groups, and waiting for them."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from .errors import failure
from .tree import Tree

POLL_S = 0.02
STOP_PATIENCE_S = 10.0

ENTER = 'echo $$ >"$0" && exec "$@"'
"""The shell enters the group and becomes the program: no instant outside the group that a cleaner
would look into."""


def start(tree: Tree, group: str, command: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    """Run a command inside a group, its output in `log`. It gets no Ctrl-C of ours: we end it."""
    with log.open("wb") as output:
        return subprocess.Popen(
            ["/bin/sh", "-c", ENTER, str(tree.entry(group)), *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


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


def ensure_alive(process: subprocess.Popen[bytes], name: str, log: Path, end_ns: int = sys.maxsize) -> None:
    """Refusal with its last words if a process ended early: with an error, or before `end_ns` (monotonic)."""
    if process.poll() is not None and (process.returncode or time.monotonic_ns() < end_ns):
        raise failure(f"{name}: ended early, exit status {process.returncode}: {last_line(log)}")


def sleep_until(monotonic_ns: int, tick: Callable[[], None]) -> None:
    """Sleep, with a tick now and then so that a display can go on."""
    while (left_s := (monotonic_ns - time.monotonic_ns()) / 1e9) > 0:
        tick()
        time.sleep(min(left_s, 0.5))


def free_port() -> int:
    """A TCP port on the loopback that nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listens(port: int) -> bool:
    """Does somebody accept connections there?"""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=0.2):
        return True
    return False


def named_threads(pid: int) -> tuple[tuple[int, str], ...]:
    """Thread id and name of every thread of a process."""
    return tuple(
        (int(task.name), (task / "comm").read_text(encoding="utf-8", errors="replace").strip())
        for task in Path(f"/proc/{pid}/task").iterdir()
    )


def read_json(path: Path) -> dict[str, object]:
    """A file that one of our own processes wrote."""
    value = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(value, dict):
        raise failure(f"{path.name}: holds no JSON object")
    return value


def end_within(processes: Sequence[subprocess.Popen[bytes]], patience_s: float) -> None:
    """Wait for orderly ends; ask those that take longer to stop and write what they have."""
    deadline = time.monotonic() + patience_s
    for process in processes:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, deadline - time.monotonic()))
    for process in processes:
        process.terminate()
    for process in processes:
        try:
            process.wait(STOP_PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise failure(
                f"load tool: does not stop within {STOP_PATIENCE_S:g} s: is the machine overloaded?"
            ) from None
