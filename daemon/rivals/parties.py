"""PARTIES, as far as a host's knobs go: a controller that moves whole cores to whoever is worst off (Chen and
others, ASPLOS'19; the DASEC paper's rival in §6.3).

Twice a second PARTIES looks at each service's *slack*, how far its tail latency is below its target. The one
with the least slack, if that is less than 5 %, gets a unit of a resource from the one with the most, if that
is more than 20 %. What did not help, or brought the giver into trouble, is taken back, and something else is
tried. Here cores are the only resource, and a vCPU's affinity the only knob.

What stands for the latency is the part of its runnable time that a workload waited for a core, because a
host sees no latencies; the target is `wait_percent`.

What differs: caches, frequency, memory and network are not partitioned; nobody is best effort, so nobody's
cores are taken for power or for batch work; with more workloads than cores, which PARTIES does not admit,
each holds one core with others, and the worst off may go to another one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, NamedTuple

from ..model import Core, Decision, Knob, Knobs, Period, PolicyState, Reason, VcpuId
from ..policy import Kind
from ..settings import Range, check
from .partition import Partition, Transfer, deal, holders, moved, undone

INTERVAL_NS = 500_000_000
"""How often PARTIES looks (ASPLOS'19)."""

LITTLE_PERCENT, MUCH_PERCENT = 5, 20
"""Of the target: with less slack a service is given something, with more it can give (ASPLOS'19)."""

WAIT_PERCENT = 20
"""The target: a fifth of runnable time. By hand: a core that is 20 % busy with others."""

PATIENCE = 10
"""For how many intervals a transfer that was taken back is not tried again. By hand: five seconds."""


@dataclass(frozen=True, slots=True)
class PartiesParameters:
    """How much of its runnable time a workload may wait, and how often that is judged."""

    wait_percent: Annotated[int, Range(1, 100, "a part of runnable time from 1 to 100")] = WAIT_PERCENT
    interval_ns: Annotated[int, Range(10, 3_600_000, unit="ms")] = INTERVAL_NS

    def __post_init__(self) -> None:
        check(self)


class Waits(NamedTuple):
    """How long a workload ran and waited in the interval so far."""

    run_ns: int = 0
    ready_ns: int = 0

    def slack_percent(self, target_percent: int) -> int:
        """How far the part that it waited is below the target, in percent of it; below 0 beyond."""
        runnable_ns = self.run_ns + self.ready_ns
        return 100 - self.ready_ns * 10_000 // (runnable_ns * target_percent) if runnable_ns else 100


class TransferTrial(NamedTuple):
    """The last transfer, and the gainer's slack before it."""

    transfer: Transfer
    slack_percent: int


@dataclass(frozen=True, slots=True)
class PartiesState(PolicyState):
    """Who holds which cores, dealt from which; the interval so far; the transfer on trial, if any; those that
    failed, each with how many intervals it is not tried again; and how many were made, for convergence."""

    held: tuple[tuple[str, tuple[Core, ...]], ...] = ()
    cores: tuple[Core, ...] = ()
    elapsed_ns: int = 0
    waits: tuple[tuple[str, Waits], ...] = ()
    trial: TransferTrial | None = None
    failed: tuple[tuple[Transfer, int], ...] = ()
    transfers: int = 0


@dataclass(frozen=True, slots=True)
class Parties:
    """Keeps every workload on its cores, and moves a core at a time."""

    parameters: PartiesParameters = field(default_factory=PartiesParameters)
    name: str = "parties"

    def initial_state(self) -> PolicyState:
        """Nothing dealt."""
        return PartiesState()

    def decide(self, period: Period, state: PolicyState) -> Decision:
        """Count; at the end of an interval, judge the last transfer or make one; everybody on their cores."""
        known = state if isinstance(state, PartiesState) else PartiesState()
        names = [workload.name for workload in period.workloads if workload.vcpus]
        cores = period.topology.cores
        if [name for name, _ in known.held] != names or known.cores != cores:
            known = PartiesState(tuple(deal(names, cores).items()), cores)
        known = _counted(known, period)
        if known.elapsed_ns >= self.parameters.interval_ns:
            known = self._judged(known)
        return _decision(period, known)

    def _judged(self, known: PartiesState) -> PartiesState:
        """At the end of an interval: the next one, perhaps with another partition."""
        target = self.parameters.wait_percent
        slack = {name: waits.slack_percent(target) for name, waits in known.waits}
        failed = tuple((each, left - 1) for each, left in known.failed if left > 1)
        ahead = replace(known, elapsed_ns=0, waits=(), trial=None, failed=failed)
        partition = dict(known.held)
        if known.trial and not _helped(known.trial, slack):
            back = undone(partition, known.trial.transfer)
            barred = (*failed, (known.trial.transfer, PATIENCE))
            return replace(ahead, held=tuple(back.items()), failed=barred, transfers=known.transfers + 1)
        transfer = _wanted(partition, slack, {each for each, _ in failed}, known.cores)
        if transfer is None:
            return ahead
        held = tuple(moved(partition, transfer).items())
        trial = TransferTrial(transfer, slack[transfer.gainer])
        return replace(ahead, held=held, trial=trial, transfers=known.transfers + 1)


def _counted(known: PartiesState, period: Period) -> PartiesState:
    """With what everybody ran and waited in this period."""
    waits = dict(known.waits)
    for workload in period.workloads:
        run_ns, ready_ns = waits.get(workload.name, Waits())
        used = [usage for vcpu in workload.vcpus if (usage := period.usage.get(vcpu.id))]
        run_ns += sum(usage.consumed_ns for usage in used)
        waits[workload.name] = Waits(run_ns, ready_ns + sum(usage.ready_ns for usage in used))
    return replace(known, elapsed_ns=known.elapsed_ns + period.length_ns, waits=tuple(waits.items()))


def _helped(trial: TransferTrial, slack: Mapping[str, int]) -> bool:
    """Whether the gainer is better off, and the giver not in need now."""
    gainer, _, giver, _ = trial.transfer
    return slack[gainer] > trial.slack_percent and (giver is None or slack[giver] >= LITTLE_PERCENT)


def _wanted(
    partition: Partition, slack: Mapping[str, int], failed: set[Transfer], cores: Sequence[Core]
) -> Transfer | None:
    """A core for the worst off that is in need and can be helped."""
    for name in sorted(partition, key=lambda each: (slack[each], each)):
        if slack[name] >= LITTLE_PERCENT:
            return None
        for transfer in (*_takings(partition, slack, name), *_goings(partition, slack, name, cores)):
            if transfer not in failed:
                return transfer
    return None


def _takings(partition: Partition, slack: Mapping[str, int], name: str) -> list[Transfer]:
    """From those who can give, the best off first; their last core."""
    givers = [each for each, held in partition.items() if each != name and len(held) > 1]
    able = sorted(
        (each for each in givers if slack[each] > MUCH_PERCENT), key=lambda each: (-slack[each], each)
    )
    return [Transfer(name, partition[each][-1], giver=each) for each in able]


def _goings(
    partition: Partition, slack: Mapping[str, int], name: str, cores: Sequence[Core]
) -> list[Transfer]:
    """From a shared core to those where everybody can bear it, the best off first."""
    (here, *more) = partition[name]
    if more or holders(partition, here) == [name]:
        return []
    able = []
    for core in cores:
        least = min((slack[each] for each in holders(partition, core)), default=100)
        if core != here and least > MUCH_PERCENT:
            able.append((-least, core))
    return [Transfer(name, core, left=here) for _, core in sorted(able)]


def _decision(period: Period, known: PartiesState) -> Decision:
    """Every vCPU on the cores that its workload holds, as far as it may use them."""
    knobs: dict[VcpuId, Knobs] = {}
    reasons: list[Reason] = []
    held = dict(known.held)
    for workload in period.workloads:
        for vcpu in workload.vcpus:
            present = period.knobs[vcpu.id].affinity if vcpu.id in period.knobs else None
            wanted = vcpu.allowed & frozenset(held[workload.name]) or vcpu.allowed
            if present is not None and present != wanted:
                knobs[vcpu.id] = Knobs(None, None, wanted)
                inputs = (("cores", len(wanted)), ("transfers", known.transfers))
                reasons.append(Reason(vcpu.id, Knob.AFFINITY, "parties.hold", inputs))
    return Decision(knobs, tuple(reasons), known)


KIND = Kind(
    "parties",
    lambda parameters: Parties(parameters.of(PartiesParameters)),
    settings=(PartiesParameters,),
    rules={"parties.hold": "its workload holds these cores"},
)
