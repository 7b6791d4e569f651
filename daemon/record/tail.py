"""A record from its end (lines.py), decoded: for who shows every vCPU of every period."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from ..model import Period
from .entries import Decoder, PeriodLine, VcpuOrder
from .lines import MALFORMED, RecordLines, begins_anew
from .provenance import Grounds


class Seen(NamedTuple):
    """One period of a record: its values, its line, and whom the line's numbers mean."""

    period: Period
    line: PeriodLine
    layout: VcpuOrder


class RecordTail:
    """What a record tells from its last whole line on, and what is added to it later."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self.grounds = Grounds()
        """Of the periods that were read."""
        self._lines = RecordLines(path)
        self._decoder = Decoder()

    def read(self) -> Iterator[Seen]:
        """The periods not read yet; none while the record is being turned over. Raises Unreadable."""
        for line in self._lines.read():
            if begins_anew(line):
                self._decoder = Decoder()
            else:
                yield self._decoded(line)

    def _decoded(self, line: bytes) -> Seen:
        try:
            period, parsed = self._decoder.period(line)
            self.grounds.read(parsed, self._decoder.layout)
        except MALFORMED as error:
            raise self._lines.not_a_period(error) from error
        return Seen(period, parsed, self._decoder.layout)
