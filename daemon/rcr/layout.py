"""Who sits where, while RCR tries swaps: made for one period from the standings, then forgotten."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from ..entitlement import Standing
from ..model import Core, Topology, Usage, Vcpu, VcpuId


class Seat(NamedTuple):
    """One vCPU on a core: row `row` of the `group`-th workload."""

    vcpu: Vcpu
    group: int
    row: int
    slice_ns: int


class Swap(NamedTuple):
    """Two vCPUs that change places, for that rule and because of those numbers."""

    one: Seat
    one_to: Core
    other: Seat
    other_to: Core
    rule: str
    inputs: tuple[tuple[str, int], ...]


class Layout:
    """The vCPUs of every core, and the sum of their slices; swaps change both."""

    def __init__(
        self,
        standings: Sequence[Standing],
        slices_ns: Sequence[Sequence[int]],
        latencies_ns: Mapping[VcpuId, int],
        pins: Mapping[VcpuId, Core],
        resting: Collection[VcpuId],
        topology: Topology,
    ) -> None:
        self._standings = standings
        self._slices_ns = slices_ns
        self._latencies_ns = latencies_ns
        self._resting = set(resting)
        self._topology = topology
        self._cores = [_with_pins(standing, pins) for standing in standings]
        self._seats: dict[Core, list[Seat]] = {}
        self._held: dict[int, dict[Core | None, int]] = {}
        self.swaps: list[Swap] = []
        self.sums_ns = _sums_ns(self._cores, slices_ns)

    def apart(self, core: Core, cores: Sequence[Core]) -> Sequence[Core]:
        """Those of the cores with which a swap changes who shares a physical core: no SMT siblings of it."""
        if not self._topology.whole_of:
            return cores
        return [each for each in cores if each == core or not self._topology.are_siblings(core, each)]

    def usage(self, seat: Seat) -> Usage | None:
        """What the vCPU did in the period; None if it has just come."""
        return self._standings[seat.group].usage[seat.row]

    def latency_ns(self, group: int, row: int) -> int | None:
        """A vCPU's latency after RLA; None if it has no such knob."""
        standing = self._standings[group]
        return self._latencies_ns.get(standing.ids[row], standing.knobs[row].rescheduling_latency_ns)

    def all_latencies_ns(self) -> list[int]:
        """The latencies after RLA of all vCPUs that have one, in no order."""
        changed = self._latencies_ns
        found = [
            changed.get(vcpu, knobs.rescheduling_latency_ns)
            for standing in self._standings
            for vcpu, knobs in zip(standing.ids, standing.knobs, strict=True)
        ]
        return [latency for latency in found if latency is not None]

    def conflicts(self, low_ns: int) -> dict[Core, int]:
        """Conflicts of the period per core, of the vCPUs with at most that latency; where they were in it."""
        conflicts: dict[Core, int] = {}
        for group, (standing, cores) in enumerate(zip(self._standings, self._cores, strict=True)):
            for row in standing.active:
                used, core = standing.usage[row], cores[row]
                if used is None or core is None or not used.conflicts:
                    continue
                latency_ns = self.latency_ns(group, row)
                if latency_ns is not None and latency_ns <= low_ns:
                    conflicts[core] = conflicts.get(core, 0) + used.conflicts
        return conflicts

    def on(self, core: Core) -> list[Seat]:
        """The vCPUs of a core as it is now."""
        if core not in self._seats:
            # Like Seat(...), without the Python code of a named tuple's constructor (decision 0003).
            self._seats[core] = [
                tuple.__new__(Seat, (vcpus[row], group, row, slices_ns[row]))
                for group, cores in enumerate(self._cores)
                if core in cores
                for vcpus, slices_ns in ((self._standings[group].vcpus, self._slices_ns[group]),)
                for row, each in enumerate(cores)
                if each == core
            ]
        return self._seats[core]

    def slices_ns_on(self, core: Core) -> list[int]:
        """The slices on a core as it is now: one at least if it is in `sums_ns`."""
        if core in self._seats:
            return [seat.slice_ns for seat in self._seats[core]]
        return [
            slice_ns
            for their_cores, slices_ns in zip(self._cores, self._slices_ns, strict=True)
            if core in their_cores
            for each, slice_ns in zip(their_cores, slices_ns, strict=True)
            if each == core
        ]

    def movable(self, core: Core, target: Core) -> list[Seat]:
        """The vCPUs of a core that RCR may move, and that may use the other core."""
        found = []
        columns = [(standing.usage, standing.knobs) for standing in self._standings]
        for seat in self.on(core):
            (who, _, allowed, _), group, row, _ = seat
            usage, knobs = columns[group]
            judged = usage[row] is not None and knobs[row].affinity is not None
            if judged and target in allowed and who not in self._resting:
                found.append(seat)
        return found

    def may_swap(
        self, one: Seat, one_from: Core, other: Seat, other_from: Core, reach: Sequence[Core]
    ) -> bool:
        """Whether both may take the other's core without joining a sibling that they could avoid.

        `reach` are the cores among which RCR moves vCPUs.
        """
        return self._fits(one, one_from, other, other_from, reach) and self._fits(
            other, other_from, one, one_from, reach
        )

    def swap(self, swap: Swap) -> None:
        """Lets two vCPUs change places; both stay there for the rest of the period."""
        one_from, other_from = swap.other_to, swap.one_to
        for seat, left, taken in ((swap.one, one_from, other_from), (swap.other, other_from, one_from)):
            held = self._held_by(seat.group)
            held[left] -= 1
            held[taken] = held.get(taken, 0) + 1
            self.sums_ns[left] -= seat.slice_ns
            self.sums_ns[taken] += seat.slice_ns
            self.on(left).remove(seat)
            self.on(taken).append(seat)
            self._resting.add(seat.vcpu.id)
        self.swaps.append(swap)

    def _held_by(self, group: int) -> dict[Core | None, int]:
        """How many vCPUs of a workload each core has."""
        if group not in self._held:
            held: dict[Core | None, int] = {}
            for core in self._cores[group]:
                held[core] = held.get(core, 0) + 1
            self._held[group] = held
        return self._held[group]

    def _fits(self, mover: Seat, origin: Core, leaver: Seat, target: Core, reach: Sequence[Core]) -> bool:
        """Whether no sibling stays on `target` once `leaver` is gone, or `mover` could not avoid one."""
        held = self._held_by(mover.group)
        same = leaver.group == mover.group
        siblings_there = held.get(target, 0) - same
        if not siblings_there:
            return True
        if held[origin] == 1 and not same:
            return False
        return not any(core in mover.vcpu.allowed and not held.get(core) for core in reach)


def _with_pins(standing: Standing, pins: Mapping[VcpuId, Core]) -> Sequence[Core | None]:
    if not pins or pins.keys().isdisjoint(standing.ids):
        return standing.cores
    return [pins.get(vcpu, core) for vcpu, core in zip(standing.ids, standing.cores, strict=True)]


def _sums_ns(cores: Sequence[Sequence[Core | None]], slices_ns: Sequence[Sequence[int]]) -> dict[Core, int]:
    sums: dict[Core | None, int] = dict.fromkeys(chain.from_iterable(cores), 0)
    for their_cores, their_slices in zip(cores, slices_ns, strict=True):
        for core, slice_ns in zip(their_cores, their_slices, strict=True):
            sums[core] += slice_ns
    return {core: sum_ns for core, sum_ns in sums.items() if core is not None}
