"""Who has a number in /proc: read once a life, and anew when the number is somebody else's."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Generic, TypeVar

from ..linux.errors import ThreadGone

_What = TypeVar("_What")
_Life = tuple[int, int]


class Lives(Generic[_What]):
    """What was read of processes or threads, by number, as long as /proc shows the same ones.

    The inode of /proc/PID belongs to the process and not to its number: whoever has the number next gets
    another one (proc_pid_make_inode()). So may the same process, where memory was short; then it is read once
    more. Asking for it costs a tenth of reading a file there.
    """

    def __init__(self, read: Callable[[int], _What], proc: str) -> None:
        """`read` raises ThreadGone."""
        self._read = read
        self._proc = proc
        self._known: dict[int, tuple[_Life, _What]] = {}
        self._seen: dict[int, tuple[_Life, _What]] = {}

    def of(self, number: int, *, anew: bool = False) -> _What:
        """What is known of whoever has this number. Raises ThreadGone."""
        try:
            there = os.stat(f"{self._proc}/{number}")
        except FileNotFoundError as error:
            raise ThreadGone(str(number)) from error
        life = (there.st_ino, there.st_ctime_ns)
        known = self._known.get(number)
        if anew or known is None or known[0] != life:
            known = (life, self._read(number))
        self._seen[number] = known
        return known[1]

    def end_of_scan(self) -> None:
        """Forget who was not asked for since the last scan."""
        self._known, self._seen = self._seen, {}
