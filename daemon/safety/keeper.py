"""The daemon's side of the keeper: start it, see that it lives, dismiss it."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import time
from pathlib import Path

from .keeping import DISMISSED

_READY_WITHIN_S = 30.0
"""A fresh interpreter needs 0.1 s (docs/measurements.md); three hundred times that on a busy host: where an
emulated guest's host was itself short of CPUs, 10 s were seen to be too few. A dead one is seen at once."""

_GONE_WITHIN_S = 10.0

_RESPAWN_EVERY_S = 1.0

_PROGRAM = """\
import sys, types
package = types.ModuleType("dasec")
package.__path__ = [sys.argv.pop(1)]
sys.modules["dasec"] = package
from dasec.safety.keeping import main
main()
"""
"""Imports this very copy of the package, however it was installed, without looking at site-packages."""


class KeeperFailed(OSError):
    """The keeper could not be started. The text is one line for the user."""


class Keeper:
    """One running keeper."""

    def __init__(self, directory: Path, cgroup: str) -> None:
        """Use `Keeper.start`."""
        self._directory, self._cgroup = directory, cgroup
        self._spawned_s = time.monotonic()
        self._process, self._life, self._ready = _spawn(directory, cgroup)

    @classmethod
    def start(cls, directory: Path, cgroup: str = "") -> Keeper:
        """Start a keeper and wait until it is ready. Raises KeeperFailed: then write no knob.

        `cgroup`: the name of one at the top of each hierarchy that it moves to (outside.py); empty: it stays
        where the daemon is.
        """
        try:
            keeper = cls(directory, cgroup)
        except OSError as error:
            text = f"keeper: {sys.executable} cannot be started: {error.strerror}"
            raise KeeperFailed(error.errno, text) from error
        if not keeper._wait_ready(_READY_WITHIN_S):
            keeper._give_up()
            raise KeeperFailed(0, f"keeper: {sys.executable} did not get ready: see the messages above")
        return keeper

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def alive(self) -> bool:
        """Does it still watch?"""
        return self._process.poll() is None

    def ensure(self) -> bool:
        """Replace a keeper that died, at most once a second and without waiting for the new one.
        True: a keeper watches now."""
        if self.alive():
            return self._wait_ready(0.0)
        now_s = time.monotonic()
        if now_s - self._spawned_s >= _RESPAWN_EVERY_S:
            self._close()
            self._spawned_s = now_s
            with contextlib.suppress(OSError):
                self._process, self._life, self._ready = _spawn(self._directory, self._cgroup)
        return False

    def dismiss(self) -> None:
        """Tell it that everything has been put back: it ends and touches nothing."""
        with contextlib.suppress(OSError):
            os.write(self._life, DISMISSED)
        self._close()
        try:
            self._process.wait(_GONE_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _wait_ready(self, timeout_s: float) -> bool:
        """It has said that it is ready; nothing is read twice."""
        if self._ready < 0:
            return True
        poll = select.poll()
        poll.register(self._ready, select.POLLIN)
        if not poll.poll(timeout_s * 1000) or not os.read(self._ready, 1):
            return False
        os.close(self._ready)
        self._ready = -1
        return True

    def _give_up(self) -> None:
        self._process.kill()
        self._process.wait()
        self._close()

    def _close(self) -> None:
        for fd in (self._life, self._ready):
            if fd >= 0:
                os.close(fd)
        self._life = self._ready = -1


def _spawn(directory: Path, cgroup: str) -> tuple[subprocess.Popen[bytes], int, int]:
    """The process, our end of its life line, and the end on which it says that it is ready."""
    package = Path(__file__).resolve().parent.parent
    life_there, life_here = os.pipe()
    ready_here, ready_there = os.pipe()
    arguments = [str(package), str(directory.absolute()), str(os.getpid()), str(life_there), str(ready_there)]
    place = -1
    try:
        place = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", "-c", _PROGRAM, *arguments, str(place), cgroup],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=(life_there, ready_there, place),
            start_new_session=True,
            env={"LC_ALL": "C.UTF-8"},
            cwd="/",
        )
    except OSError:
        os.close(life_here)
        os.close(ready_here)
        raise
    finally:
        for fd in (life_there, ready_there, place):
            if fd >= 0:
                os.close(fd)
    return process, life_here, ready_here
