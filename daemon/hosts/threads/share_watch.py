"""Did somebody write a workload's share or quota? Neither is ours: the policy follows them.

`virsh schedinfo` and systemd write both while a domain runs, and nothing else tells.
"""

from __future__ import annotations

from ...linux.watch import FileWatch


class ShareWatch:
    """Watches the files that say what the host gives the workloads."""

    def __init__(self) -> None:
        self._files = FileWatch()
        self._watched: frozenset[str] = frozenset()

    def follow(self, files: frozenset[str]) -> None:
        """Watch these and no others."""
        for file in self._watched - files:
            self._files.drop(file)
        for file in files - self._watched:
            self._files.add(file)
        self._watched = files

    def changed(self) -> bool:
        """Was one of them written since the last look? Where inotify cannot say: perhaps."""
        if not self._watched:
            return False
        written = self._files.written()
        for file in written & self._watched:
            self._files.add(file)  # it may be the new one of a group that was removed and made again
        return bool(written) or not self._files.complete

    def close(self) -> None:
        """End all watches."""
        self._files.close()
