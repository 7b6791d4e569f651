"""What the service manager is told: sd_notify(3), a datagram to the socket that $NOTIFY_SOCKET names.

Without that variable nobody is told. The protocol is fixed and documented; no library for it is both kept and
used (docs/decisions/0026-service.md).
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import time
from collections.abc import Callable, Mapping, Sequence

from ..errors import ExitStatus, Refusal
from ..linux.printable import printable

MICROSECONDS = re.compile("[0-9]{1,20}")
"""64 bits."""

PINGS_IN_TIME = 4
"""sd_watchdog_enabled(3) asks for a ping in half the time; one ping may then be late, here two."""


class ServiceManager:
    """Hears from the loop that it runs, and what it is about to do. Refuses (status 2) an environment that no
    manager made."""

    def __init__(
        self, environment: Mapping[str, str] = os.environ, clock: Callable[[], int] = time.monotonic_ns
    ) -> None:
        watchdog_us = environment.get("WATCHDOG_USEC") or "0"
        if MICROSECONDS.fullmatch(watchdog_us) is None:
            raise Refusal(
                ExitStatus.USAGE,
                f"WATCHDOG_USEC: {watchdog_us}: is no number: leave it to the service manager",
            )
        self._interval_ns = int(watchdog_us) * 1000 // PINGS_IN_TIME
        self._clock = clock
        self._address = environment.get("NOTIFY_SOCKET", "").replace("@", "\0", 1)
        self._socket = socket.socket(
            socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
        )
        self._ping_ns: int | None = None

    def alive(self) -> None:
        """The loop turns. The first time: everything stands, the service has started."""
        now_ns = self._clock()
        if self._ping_ns is None:
            self._tell("READY=1")
        elif not self._interval_ns or now_ns < self._ping_ns:
            return
        else:
            self._tell("WATCHDOG=1")
        self._ping_ns = now_ns + self._interval_ns

    def reloading(self) -> None:
        """The configuration is about to be read again; `answer` says that it was."""
        self._tell(f"RELOADING=1\nMONOTONIC_USEC={self._clock() // 1000}")

    def answer(self, refused: Sequence[str]) -> None:
        """It was taken, or refused for these reasons."""
        status = printable(f"not reloaded: {refused[0]}") if refused else ""
        self._tell(f"READY=1\nSTATUS={status}")

    def stopping(self) -> None:
        """The loop has ended; what is left is to put back and to go."""
        self._tell("STOPPING=1")

    def close(self) -> None:
        """Let the socket go."""
        self._socket.close()

    def _tell(self, text: str) -> None:
        """A manager that restarts hears nothing for a while; the watchdog's next ping comes in time."""
        if self._address:
            with contextlib.suppress(OSError):
                self._socket.sendto(text.encode(), self._address)
