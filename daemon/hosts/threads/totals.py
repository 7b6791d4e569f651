"""Totals over groups that come and go."""

from __future__ import annotations

from collections.abc import Mapping

from ...model import VcpuId

Counting = str | VcpuId
"""A group's directory, or the vCPU whose own group it is."""


class SeenTotals:
    """What these groups have counted, of each from the first look at it on: what it had counted before, below
    another limit or another daemon, nobody has seen happen. `seen`: what each had at the last look. In ns."""

    def __init__(self, seen: Mapping[Counting, int]) -> None:
        self._seen = seen
        self.sum_ns = 0

    def look(self, counted: Mapping[Counting, int]) -> int:
        """The sum, when these are the groups that count and this is what each has; never less than before."""
        more_ns = (now_ns - self._seen.get(group, now_ns) for group, now_ns in counted.items())
        self.sum_ns += sum(max(0, one_ns) for one_ns in more_ns)
        self._seen = counted
        return self.sum_ns
