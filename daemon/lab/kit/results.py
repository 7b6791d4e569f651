"""What was measured: one value a workload a run, and all runs of a series."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..load_tool import Latencies

ALL = "all"


def kind_of(tenant: str) -> str:
    """memcached-3 is a memcached."""
    return tenant.rpartition("-")[0]


@dataclass(frozen=True, slots=True)
class TenantResult:
    """One workload in one run."""

    name: str
    latencies: Latencies
    throughput_per_s: float
    unfinished: int
    errors: int
    late_sends: int
    cores: float
    background_cores: float = 0.0
    """By threads that no request waits for. Not in seconds: a busy machine looks late, so runs differ in how
    long they were looked at."""
    blame_s: float | None = None
    """How long its critical threads were ready while siblings waited for them; None: not watched."""
    waiting: float | None = None
    """How many of its threads were ready and waited for a CPU, on average; None: not known."""

    def value(self, metric: str) -> float:
        """A latency in nanoseconds by its name (`mean`, `p50` …), requests per second, or cores used."""
        if metric == "CPU":
            return self.cores
        if metric == "throughput":
            return self.throughput_per_s
        if metric == "mean":
            return self.latencies.mean_ns
        return float(self.latencies.percentiles_ns[metric])


@dataclass(frozen=True, slots=True)
class RunResult:
    """One arm in one repetition. CPU times are of the measured part, in seconds; `busy` and `steal` are
    parts of the machine's. `busy` is what was not idle, with `steal`, which the hypervisor took;
    `other_cores` is what the rest of the host used meanwhile, without that."""

    arm: str
    repetition: int
    tenants: tuple[TenantResult, ...]
    client_cpu_s: float
    daemon_cpu_s: float
    busy: float
    other_cores: float
    steal: float
    seconds: float
    decided: Mapping[str, int]
    troubles: tuple[str, ...] = ()
    """What the daemon complained of at the end of the measured part."""


@dataclass(frozen=True, slots=True)
class Measured:
    """All runs, in the order they were made, and the arms, the default and its control first."""

    arms: tuple[str, ...]
    tenants: tuple[str, ...]
    repetitions: int
    runs: tuple[RunResult, ...]
    thrown_away: int = 0
    """So many runs more were made, of blocks that the hypervisor hit."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of workload there are."""
        return tuple(dict.fromkeys(map(kind_of, self.tenants)))

    def tenants_of(self, workload: str) -> tuple[str, ...]:
        """The tenants of a kind, or the one tenant of that name, or all for ALL."""
        return tuple(name for name in self.tenants if workload in (ALL, name, kind_of(name)))

    def of(self, arm: str) -> tuple[RunResult, ...]:
        """The runs of one arm, by repetition."""
        return tuple(sorted((run for run in self.runs if run.arm == arm), key=lambda run: run.repetition))

    def values(self, arm: str, tenant: str, metric: str) -> tuple[float, ...]:
        """One value a repetition."""
        index = self.tenants.index(tenant)
        return tuple(run.tenants[index].value(metric) for run in self.of(arm))

    def histograms(self, arm: str, workload: str) -> list[str]:
        """The histograms of all repetitions and tenants of a workload, to be merged."""
        names = self.tenants_of(workload)
        return [one.latencies.hdr for run in self.of(arm) for one in run.tenants if one.name in names]
