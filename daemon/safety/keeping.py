"""The keeper process: waits for the daemon to end, and puts everything back if it did not do so itself.

Everything is imported before the daemon hears "ready": what is on disk may be another
version by the time it is needed.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import sys
import time
from pathlib import Path

from ..linux.printable import printable
from .journal.directory import MOMENTARY, JournalBusy
from .outside import Outside
from .restore import recover

NAME = "dasec-keeper"
READY = b"+"
DISMISSED = b"-"

LOCK_WAIT_S = 30.0
"""How long to wait for the journal: a dying daemon lets go of it within its exit, and a new
daemon that has it puts everything back itself, or dies and leaves it to us."""

_ATTEMPTS = 3

_PAUSE_S = 1.0
"""Before the next attempt to read a journal that could not be read."""

_OOM_SCORE_ADJ = -500
_NICE = -10
"""For the process and, where sessions compete (autogroup), for its session."""
_SURVIVED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE, signal.SIGUSR1)


def keep(directory: Path, daemon_pid: int, life: int, ready: int, place: int, outside: Outside) -> int:
    """Run until the daemon has ended. `life`: the pipe whose other end only the daemon has open; `place`: the
    directory, open, so that the journal is found wherever somebody has moved it."""
    for number in _SURVIVED:
        signal.signal(number, signal.SIG_IGN)
    try:
        outside.enter()
    except OSError as error:
        _say(f"cannot move to the cgroup {outside.name}: {error}")
        return 1
    _settle_in()
    watched = _watch(life, daemon_pid)
    gc.collect()
    gc.freeze()
    with contextlib.suppress(OSError):
        os.write(ready, READY)
    os.close(ready)
    if watched is not None:
        watched.poll()
    status = 0 if _dismissed(life) else max(_put_back(directory, at) for at in _places(directory, place))
    outside.remove()
    return status


def _settle_in() -> None:
    """Be found, be spared, be quick. All of it best effort."""
    for name, text in (("comm", NAME), ("autogroup", str(_NICE))):
        with contextlib.suppress(OSError), open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)
    with contextlib.suppress(OSError, ValueError):
        spare(Path("/proc/self/oom_score_adj"))
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, _NICE)
    with contextlib.suppress(OSError):  # the daemon lets others go first (give_way.py)
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def spare(score: Path) -> None:
    """Others go first when memory runs out. Whoever sits lower already, as a critical pod, stays there."""
    if int(score.read_text("ascii")) > _OOM_SCORE_ADJ:
        score.write_text(str(_OOM_SCORE_ADJ), "ascii")


def _watch(life: int, daemon_pid: int) -> select.poll | None:
    """What fires when the daemon speaks or ends: the pipe, or (should a child of the daemon hold
    the pipe open) its pid descriptor. None: it has ended already."""
    poll = select.poll()
    poll.register(life, select.POLLIN)
    try:
        poll.register(os.pidfd_open(daemon_pid), select.POLLIN)
    except ProcessLookupError:
        return None
    except OSError:
        return poll
    return poll if os.getppid() == daemon_pid else None


def _dismissed(life: int) -> bool:
    os.set_blocking(life, False)
    try:
        return os.read(life, 1) == DISMISSED
    except OSError:
        return False


def _places(directory: Path, place: int) -> tuple[int | None, ...]:
    """Where to look: in the open directory, and where its path leads now (None) if that is another one."""
    try:
        return (place,) if os.path.samestat(os.fstat(place), os.lstat(directory)) else (place, None)
    except OSError:
        return (place,)


def _put_back(directory: Path, at: int | None) -> int:
    problems: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    done = 0
    for _ in range(_ATTEMPTS):
        try:
            restored, notices = recover(directory, wait_s=LOCK_WAIT_S, at=at)
        except JournalBusy as busy:
            _say(f"left to the one who has the journal now: {busy.strerror}")
            return 0
        except OSError as error:
            if error.errno not in MOMENTARY:
                _say(f"nothing put back: {error}")
                return 1
            problems = (str(error),)
            time.sleep(_PAUSE_S)
            continue
        except Exception as error:  # nobody comes after us: whatever it is, it is worth another attempt
            problems = (str(error) or type(error).__name__,)
            continue
        for notice in notices:
            _say(str(notice))
        done += restored.put_back
        problems, waiting = restored.failed, restored.waiting
        if not problems:
            break
    _say(f"the daemon ended without putting back what it had changed: {done} knobs put back")
    for problem in problems:
        _say(f"not put back: {problem}")
    for held in waiting:
        _say(f"not put back yet: {held}: run `dasec restore` then")
    return 1 if problems else 0


def _say(text: str) -> None:
    """Nobody may be listening any more; and who listens, but does not read, is not waited for."""
    room = select.poll()
    room.register(2, select.POLLOUT)
    with contextlib.suppress(OSError):
        if room.poll(0):
            os.write(2, _line(text))


def _line(text: str) -> bytes:
    """As much as a pipe that has room at all takes at once (pipe(7))."""
    return f"{printable(f'{NAME}: {text}')}".encode()[: select.PIPE_BUF - 1] + b"\n"


def main() -> None:
    """Arguments: directory, the daemon's pid, the pipes' descriptors, the directory's, a cgroup's name."""
    directory, daemon_pid, life, ready, place, cgroup = sys.argv[1:7]
    outside = Outside.named(cgroup)
    os._exit(keep(Path(directory), int(daemon_pid), int(life), int(ready), int(place), outside))
