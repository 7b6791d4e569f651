"""What one vCPU that always wants to run gets of its CPUs at its neutral weight: a *fair turn*.

That is a property of the CPUs, the same for all who share them, and seen in who waits there. A vCPU of weight
w that waits for q until it has run for r competes with a weight of w × q / r. So one of neutral weight n that
always wants to run gets this part of the time:

    n / (n + competing weight)

Witnesses are the vCPUs of all workloads with the same allowed CPUs, each as much as it wanted to run: one
that always does shows exactly how crowded it is, one that seldom does may have chosen its moments. Whoever
is taken time from waits, and so has a voice here; a workload that only looks critical cannot outvote it
without running on the same CPUs and never waiting there.

No workload's own vCPUs would do. Where none of them always wants to run, what they ran says little, and the
weights of one workload would be on another scale than its neighbour's (docs/decisions/0020-crowd.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import mul
from typing import NamedTuple

from ..model import Core
from .scores import FULL

Cpus = frozenset[Core]
Witness = tuple[int, int, int]
"""The weight of a vCPU in a period, and for how long it was running, and ready."""


class Crowd(NamedTuple):
    """How crowded a set of CPUs is, remembered as demand is: the time that passed, for how long its witnesses
    ran, and how long they waited, in weight × ns; both by how much each wanted to run."""

    length_ns: int = 0
    ran: int = 0
    waited: int = 0

    def after(self, length_ns: int, witnesses: Sequence[Witness], decay_percent: int) -> Crowd:
        """With a period more, in which these were there."""
        wanted = [(run_ns + ready_ns) * FULL // length_ns for _, run_ns, ready_ns in witnesses]
        ran = [run_ns for _, run_ns, _ in witnesses]
        waited = [weight * ready_ns for weight, _, ready_ns in witnesses]
        return Crowd(
            self.length_ns * decay_percent // 100 + length_ns,
            self.ran * decay_percent // 100 + sum(map(mul, wanted, ran)),
            self.waited * decay_percent // 100 + sum(map(mul, wanted, waited)),
        )

    def turn_ns(self, neutral: int) -> int:
        """What one of that neutral weight that always wants to run gets there; 0 if nobody knows."""
        ran = self.ran * neutral
        return self.length_ns * ran // (ran + self.waited) if ran else 0


Crowds = Mapping[Cpus, Crowd]


def crowds_after(
    past: Crowds, length_ns: int, witnesses: Mapping[Cpus, Sequence[Witness]], decay_percent: int
) -> Crowds:
    """How crowded each set of CPUs is; those are forgotten where nobody has run for long."""
    kept = [cpus for cpus, crowd in past.items() if crowd.ran or cpus in witnesses]
    return {
        cpus: past.get(cpus, Crowd()).after(length_ns, witnesses.get(cpus, ()), decay_percent)
        for cpus in dict.fromkeys((*kept, *witnesses))
    }


def fair_turn_ns(crowds: Crowds, places: Iterable[Cpus], neutral: int) -> int:
    """Where a vCPU of that neutral weight may be in one of these places: where it gets least. 0 if nobody
    knows, as where a group around the workload competes for it."""
    known = [crowds[cpus] for cpus in places if cpus in crowds]
    return min([crowd.turn_ns(neutral) for crowd in known if crowd.ran], default=0)
