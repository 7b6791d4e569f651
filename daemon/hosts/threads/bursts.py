"""Where a workload's limit saves up nothing, it gets a small burst (bandwidth/burst.py).

Written once, followed when the limit changes, put back when the workload goes or we end.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ...bandwidth.burst import burst_us
from ...bandwidth.rates import Cap
from ...knobs import knob
from ...knobs.bursts import BURST
from ...knobs.groups import knob_of_group
from ...knobs.knob import KnobRef, Write
from ...linux import bandwidth, procfs
from ...linux.errors import ThreadGone
from ...model import Restored
from ...safety.journal.ledger import Outstanding
from ...safety.kernel import Kernel
from ...safety.restore import put_back_each
from .ahead import WriteAhead
from .limits import Limited
from .notices import Notices

NONE = 0


class HeldBurst(NamedTuple):
    """The burst of a group, and what we wrote last."""

    ref: KnobRef
    value: int


class Bursts:
    """Of the groups around whole workloads: where vCPUs have quotas of their own, loans change those, and a
    quota may not be less than the burst."""

    def __init__(
        self, journal: WriteAhead, kernel: Kernel, notices: Notices, proc: str = procfs.PROC
    ) -> None:
        self._journal, self._kernel, self._notices, self._proc = journal, kernel, notices, proc
        self._jiffy_us = bandwidth.jiffy_us()
        self._held: dict[str, HeldBurst] = {}
        self._left: dict[str, KnobRef] = {}  # somebody else's, or refused: as long as it is this group

    def follow(self, limited: Sequence[Limited]) -> None:
        """These are the limited workloads now."""
        wanted = {one.directory: one for one in limited if one.directory and one.size}
        self._put_back([path for path in self._held if path not in wanted])
        self._left = {path: ref for path, ref in self._left.items() if path in wanted}
        for directory, one in wanted.items():
            try:
                self._see_to(directory, one)
            except ThreadGone:
                self._drop(directory)  # who starts anew in its place is seen to at the next look
            except OSError as error:
                why = error.strerror or error
                self._notices.say("bursts that could not be set", f"no burst for {one.workload}: {why}")

    def restore(self) -> Restored:
        """Put all of them back."""
        return self._put_back(list(self._held))

    def _see_to(self, directory: str, one: Limited) -> None:
        ref = knob_of_group(BURST, bandwidth.burst_file(bandwidth.quota_file_at(directory)))
        held = self._held.get(directory)
        if held is not None and held.ref != ref:
            self._drop(directory)  # that group was removed, and another one made in its place
        if self._left.get(directory) == ref:
            return
        try:
            self._follow_quota(directory, one, ref)
        except OSError:
            self._left[directory] = ref
            raise

    def _follow_quota(self, directory: str, one: Limited, ref: KnobRef) -> None:
        held = self._held.get(directory)
        quota_us, _, period_us = bandwidth.read_quota(bandwidth.quota_file_at(directory)).partition(" ")
        if not quota_us.isdecimal():
            self._put_back([directory] if held else [])
            return
        if not os.path.exists(ref.file):
            raise OSError(errno.EOPNOTSUPP, f"{ref.file} is not there: bursts came with Linux 5.14")
        value = burst_us(Cap(int(quota_us), int(period_us)), one.size, self._jiffy_us)
        present = knob.read_known(ref, self._proc)
        if held and present == value:
            return
        if present != (held.value if held else NONE):
            self._drop(directory)
            self._left[directory] = ref  # somebody else's, from now on
            return
        self._write(directory, ref, value)

    def _write(self, directory: str, ref: KnobRef, value: int) -> None:
        self._journal.begin((Write(ref, NONE, value),))
        try:
            knob.write_known(ref, value, self._proc)
        except (ThreadGone, OSError):
            if directory in self._held:
                self._journal.rejected((ref,))
            else:
                self._journal.settle((ref,))
            raise
        self._held[directory] = HeldBurst(ref, value)
        self._notices.say("bursts", f"{ref.file}: {value} us may be saved up, a jiffy for each thread")

    def _drop(self, directory: str) -> None:
        held = self._held.pop(directory, None)
        if held is not None:
            self._journal.settle((held.ref,))

    def _put_back(self, directories: Iterable[str]) -> Restored:
        refs = {self._held[directory].ref: directory for directory in directories}
        outstanding = [Outstanding(ref, NONE, (self._held[at].value,)) for ref, at in refs.items()]
        done = put_back_each(outstanding, (), (), self._kernel)
        settled = set(done.settled())
        self._journal.settle(settled)
        for ref in settled:
            self._held.pop(refs[ref], None)
        return done.summary()
