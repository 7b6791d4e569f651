"""Two groups on one CPU under EEVDF, one of which is re-weighted while it runs: by the wrong rule, and right.

    python -m experiments.studies.reweighting.model

Group `a` has load on another CPU, too, so its weight here jumps with each wake-up and sleep of its nappers;
`b` has all of its weight here. Both always want to run. Nothing else is modelled: no wake-up preemption,
no tick but for taking turns.
"""

from __future__ import annotations

from dataclasses import dataclass, field

NEUTRAL = 1024.0
AWAKE, ASLEEP = NEUTRAL * 2 / 3, NEUTRAL / 2
"""Of `a` on this CPU: two of its three runnable threads are here, or one of two."""

SLICE_NS, TICK_NS = 2_800_000, 4_000_000
NAP_NS = 75_000
"""Between two re-weightings: 6700 naps a second."""


@dataclass
class Entity:
    """One group on the CPU: weight, virtual runtime, virtual deadline, CPU time."""

    weight: float
    vruntime: float = 0.0
    deadline: float = 0.0
    got_ns: int = 0

    def virtual(self, ns: float) -> float:
        """So much time of its own in virtual time."""
        return ns * NEUTRAL / self.weight


@dataclass
class Cpu:
    """Who runs, and by which rule a running entity is re-weighted."""

    right: bool
    a: Entity = field(default_factory=lambda: Entity(ASLEEP))
    b: Entity = field(default_factory=lambda: Entity(NEUTRAL))

    def average(self) -> float:
        """V: the weighted mean of the virtual runtimes."""
        both = (self.a, self.b)
        return sum(one.weight * one.vruntime for one in both) / sum(one.weight for one in both)

    def reweight(self, weight: float) -> None:
        """`a`, which runs, gets another weight. Its lag and what is left until its deadline shall stay.

        The wrong rule places it as if it were not in the average: it takes the average *with* it, at its new
        weight, and stretches the lag by (W + w) / W for an effect that is in there already.
        """
        one, before = self.a, self.average()
        limit = one.virtual(max(2 * SLICE_NS, TICK_NS))
        lag = max(-limit, min(limit, before - one.vruntime)) * one.weight / weight
        left = (one.deadline - one.vruntime) * one.weight / weight
        one.weight = weight
        if self.right:
            one.vruntime = before - lag
        else:
            total = self.a.weight + self.b.weight
            one.vruntime = self.average() - lag * (total + weight) / total
        one.deadline = one.vruntime + left

    def next_after(self, current: Entity) -> Entity:
        """At a tick: of those who have had no more than their part, the one with the earliest deadline."""
        if current.vruntime >= current.deadline:
            current.deadline = current.vruntime + current.virtual(SLICE_NS)
        average = self.average() + 1e-6
        eligible = [one for one in (self.a, self.b) if one.vruntime <= average]
        return min(eligible, key=lambda one: one.deadline, default=current)


def compete(*, right: bool, ns: int = 2_000_000_000) -> tuple[Cpu, int]:
    """The CPU after that time, and the most that `a` got while `b` waited (ns)."""
    cpu = Cpu(right)
    for one in (cpu.a, cpu.b):
        one.deadline = one.virtual(SLICE_NS)
    current, then_ns, longest_ns = cpu.a, 0, 0
    for clock in range(0, ns, NAP_NS):
        current.got_ns += NAP_NS
        current.vruntime += current.virtual(NAP_NS)
        if current is cpu.b:
            then_ns = cpu.a.got_ns
        else:
            cpu.reweight(AWAKE if cpu.a.weight == ASLEEP else ASLEEP)
        longest_ns = max(longest_ns, cpu.a.got_ns - then_ns)
        if clock // TICK_NS != (clock + NAP_NS) // TICK_NS:
            current = cpu.next_after(current)
    return cpu, longest_ns


if __name__ == "__main__":
    for is_right in (False, True):
        after, starved_ns = compete(right=is_right)
        rule = "right" if is_right else "wrong"
        got = f"a {after.a.got_ns / 1e6:.0f} ms, b {after.b.got_ns / 1e6:.0f} ms"
        print(f"{rule}: {got}, the most of a while b waited {starved_ns / 1e6:.0f} ms")
