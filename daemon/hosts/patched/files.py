"""The kept dasec files of the managed processes, and writing into them process by process."""

from __future__ import annotations

from collections.abc import Sequence

from ...knobs.knob import Write
from ...knobs.patched import PatchKnob
from ...linux import dasecfile, procfs
from ...linux.dasecfile import DasecFile, Setting
from ...linux.errors import ThreadGone


class ProcessFiles:
    """One open file a process; and which processes we have written to since they were read."""

    def __init__(self, proc: str = procfs.PROC) -> None:
        self._proc = proc
        self._files: dict[int, DasecFile] = {}
        self.written: set[int] = set()
        """Their lines must be compared anew, even those that have not changed since the last reading."""

    def keep(self, pids: frozenset[int]) -> None:
        """Let the files of all other processes go."""
        for pid in self._files.keys() - pids:
            self._files.pop(pid).close()
        self.written &= pids

    def drop(self, pid: int) -> None:
        """The process has ended: whoever gets its number has another file."""
        if pid in self._files:
            self._files.pop(pid).close()

    def of(self, pid: int) -> DasecFile:
        """The file of a process. Raises ThreadGone, or OSError."""
        file = self._files.get(pid)
        if file is None:
            file = self._files[pid] = DasecFile(pid, self._proc)
        return file

    def write_together(self, writes: Sequence[Write]) -> frozenset[Write]:
        """Those of the writes that went in. A transaction that the kernel refuses changed nothing:
        its writes are left to be tried one by one, so that one thread spoils none of the others."""
        by_process: dict[int, list[Write]] = {}
        for write in writes:
            if isinstance(write.ref.kind, PatchKnob):
                by_process.setdefault(write.ref.vcpu.pid, []).append(write)
        done: list[Write] = []
        for pid, of_process in by_process.items():
            self.written.add(pid)
            done += self._write(pid, of_process)
        return frozenset(done)

    def _write(self, pid: int, writes: Sequence[Write]) -> list[Write]:
        done: list[Write] = []
        first = 0
        for lines, length in dasecfile.transactions(map(_setting, writes)):
            try:
                self.of(pid).write(lines)
                done += writes[first : first + length]
            except (ThreadGone, OSError):
                pass
            first += length
        return done


def _setting(write: Write) -> Setting:
    kind, new = write.ref.kind, write.new
    assert isinstance(kind, PatchKnob), "only the patch's knobs are in its file"
    assert not isinstance(new, tuple), "the patch's knobs hold one word each"
    return Setting(write.ref.vcpu.tid, kind.key, new)
