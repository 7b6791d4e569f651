"""Whose weight did somebody else write? An unwritten file is not read again."""

from __future__ import annotations

from collections.abc import Iterable

from ...linux.watch import FileWatch
from .thread import ManagedThread


class WeightWatch:
    """Watches the weight files that we hold."""

    def __init__(self) -> None:
        self._files = FileWatch()
        self._owners: dict[str, ManagedThread] = {}
        self._suspects: set[str] = set()

    def add(self, thread: ManagedThread) -> None:
        """We are about to write this thread's weight for the first time."""
        if thread.weight is not None and thread.weight.file not in self._owners:
            self._owners[thread.weight.file] = thread
            self._files.add(thread.weight.file)

    def drop(self, thread: ManagedThread) -> None:
        """Its weight is not ours any more, or the thread is gone."""
        if thread.weight is not None and self._owners.pop(thread.weight.file, None) is not None:
            self._files.drop(thread.weight.file)

    def ours(self, threads: Iterable[ManagedThread]) -> None:
        """We have just written these: their events mean nothing; others that came with them do."""
        written = {thread.weight.file for thread in threads if thread.weight is not None}
        if written:
            self._suspects |= self._files.written() - written

    def suspects(self) -> tuple[ManagedThread, ...]:
        """Whose weight to read back now: all of them where inotify cannot say."""
        if not self._files.complete:
            return tuple(self._owners.values())
        files = self._suspects | self._files.written() if self._owners else frozenset[str]()
        self._suspects = set()
        return tuple(self._owners[file] for file in files if file in self._owners)

    def close(self) -> None:
        """End all watches."""
        self._files.close()
        self._owners.clear()
