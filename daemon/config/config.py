"""The configuration: TOML, checked whole before the first effect; every error at once, one line each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, ValidationError, model_validator
from pydantic_core import to_json

from .. import budget
from ..critical import MAX_LATENCY_PERCENT, MAX_WEIGHT_RATIO, CriticalParameters, Fairness
from ..guard.parameters import BACKOFF_S, HARM_PERCENT, RECHECK_S, GuardParameters
from ..hosts.host import MOST_THREADS, ROOM
from ..hosts.open import AUTO, BACKENDS
from ..linux import cpulist
from ..policy import POLICIES, Parameters
from ..rcr import RcrParameters
from ..rivals import BvtParameters, OracleParameters, PartiesParameters
from ..rla import RlaParameters
from ..tsa import MAX_WEIGHT_SPAN, TsaParameters
from . import toml_file
from .complaints import Complaint, complaints_of, nearest, path_of
from .metrics import MetricsSection
from .section import Section

TSA, RLA, RCR, CRITICAL = TsaParameters(), RlaParameters(), RcrParameters(), CriticalParameters()
BVT, PARTIES = BvtParameters(), PartiesParameters()
"""Where the defaults come from."""

SELECTORS = ("pids", "cgroup", "match", "libvirt")


class ConfigError(Exception):
    """The configuration cannot be used; `lines` says why, one error each."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


def _policy(name: str) -> str:
    if name not in POLICIES:
        raise ValueError(f"no policy named {name!r} in this build: {nearest(name, POLICIES)}")
    return name


def _cpus(text: str) -> str:
    if not cpulist.parse(text):
        raise ValueError("names no CPU")
    return text


def _cgroup(path: str) -> str:
    if not path.startswith("/") or ".." in path.split("/") or "\0" in path:
        raise ValueError(f"{path!r} is not a path from the hierarchy's root")
    return path


def _shown(name: str) -> str:
    if not name.isprintable():
        raise ValueError(f"{name!r} has characters that cannot be shown")
    return name


def _backend(name: str) -> str:
    if name not in (AUTO, *BACKENDS):
        raise ValueError(f"no backend named {name!r} in this build: {nearest(name, (AUTO, *BACKENDS))}")
    return name


class HostSection(Section):
    """Which kernel interface, which cores, and what we may do there."""

    backend: Annotated[str, AfterValidator(_backend)] = Field(
        default=AUTO, description=" or ".join(f'"{name}"' for name in (AUTO, *BACKENDS))
    )
    cpus: Annotated[str, AfterValidator(_cpus)] | None = Field(
        default=None, description='a list of CPUs such as "0-3,8"'
    )
    own_cgroups: bool = Field(default=False, description="true or false")
    bpf: bool = Field(default=True, description="true or false")
    weights: Literal["auto", "on", "off"] = Field(default="auto", description='"auto", "on" or "off"')
    on_foreign_write: Literal["yield", "reapply", "alert"] = Field(
        default="yield", description='"yield", "reapply" or "alert"'
    )
    max_threads_per_workload: int = Field(
        default=MOST_THREADS, ge=1, le=ROOM, description=f"a count from 1 to {ROOM}"
    )


class TsaSection(Section):
    """The time-slice allocator (§4.2)."""

    enabled: bool = Field(default=TSA.enabled, description="true or false")
    step_percent: int = Field(default=TSA.step_percent, ge=1, le=100, description="an integer from 1 to 100")
    weight_span: int = Field(
        default=TSA.weight_span,
        ge=2,
        le=MAX_WEIGHT_SPAN,
        description=f"how far a weight may be from the mean, a factor from 2 to {MAX_WEIGHT_SPAN}",
    )
    tick_us: int = Field(default=TSA.tick_ns // 1000, ge=0, le=100_000, description="from 0 to 100000 us")

    def parameters(self) -> TsaParameters:
        """As the rule takes them."""
        return TsaParameters(self.enabled, self.step_percent, self.weight_span, self.tick_us * 1000)


SLICE_US = "from 100 to 100000 us, as the kernel takes them"


class RlaSection(Section):
    """The rescheduling latency adjuster (§4.2)."""

    enabled: bool = Field(default=RLA.enabled, description="true or false")
    step_percent: int = Field(default=RLA.step_percent, ge=1, le=50, description="an integer from 1 to 50")
    floor_us: int = Field(default=RLA.floor_ns // 1000, ge=100, le=100_000, description=SLICE_US)
    ceiling_us: int = Field(default=RLA.ceiling_ns // 1000, ge=100, le=100_000, description=SLICE_US)
    start_us: int = Field(default=RLA.start_ns // 1000, ge=100, le=100_000, description=SLICE_US)
    respect_burst: bool = Field(default=RLA.respect_burst, description="true or false")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if not self.floor_us <= self.start_us <= self.ceiling_us:
            raise ValueError(
                f"start_us {self.start_us} is not between floor_us {self.floor_us}"
                f" and ceiling_us {self.ceiling_us}"
            )
        return self

    def parameters(self) -> RlaParameters:
        """As the rule takes them."""
        return RlaParameters(
            enabled=self.enabled,
            step_percent=self.step_percent,
            floor_ns=self.floor_us * 1000,
            ceiling_ns=self.ceiling_us * 1000,
            start_ns=self.start_us * 1000,
            respect_burst=self.respect_burst,
        )


class RcrSection(Section):
    """The resource conflict resolver (§4.2)."""

    enabled: bool = Field(default=RCR.enabled, description="true or false")
    slice_imbalance_percent: int = Field(
        default=RCR.slice_imbalance_percent, ge=1, le=10_000, description="an integer from 1 to 10000"
    )
    conflict_ratio: int = Field(
        default=RCR.conflict_ratio, ge=1, le=1000, description="an integer from 1 to 1000"
    )
    min_conflicts: int = Field(default=RCR.min_conflicts, ge=1, le=10**6, description="a count from 1")
    cooldown_periods: int = Field(default=RCR.cooldown_periods, ge=0, le=10**6, description="a count from 0")
    max_slice_swaps: int = Field(
        default=RCR.max_slice_swaps, ge=1, le=1000, description="a count from 1 to 1000"
    )
    min_gain_percent: int = Field(
        default=RCR.min_gain_percent, ge=1, le=100, description="an integer from 1 to 100"
    )
    across_nodes: bool = Field(default=RCR.across_nodes, description="true or false")

    def parameters(self) -> RcrParameters:
        """As the rule takes them."""
        return RcrParameters(**self.model_dump())


class CriticalSection(Section):
    """The policy `critical` (docs/critical.md)."""

    weight_ratio: int = Field(
        default=CRITICAL.weight_ratio,
        ge=2,
        le=MAX_WEIGHT_RATIO,
        description=f"the largest weight to the smallest, from 2 to {MAX_WEIGHT_RATIO}",
    )
    nested_weight_ratio: int = Field(
        default=CRITICAL.nested_weight_ratio,
        ge=2,
        le=MAX_WEIGHT_RATIO,
        description=f"the same below a group of the workload's own, from 2 to {MAX_WEIGHT_RATIO}",
    )
    decay_percent: int = Field(
        default=CRITICAL.decay_percent, ge=10, le=99, description="an integer from 10 to 99"
    )
    burst_us: int = Field(
        default=CRITICAL.burst_ns // 1000, ge=1, le=100_000, description="from 1 to 100000 us"
    )
    deadband_percent: int = Field(
        default=CRITICAL.deadband_percent, ge=0, le=25, description="an integer from 0 to 25"
    )
    guess: bool = Field(default=CRITICAL.guess, description="true or false")
    yield_latency_percent: int = Field(
        default=CRITICAL.yield_latency_percent,
        ge=100,
        le=MAX_LATENCY_PERCENT,
        description=f"an integer from 100 (as it is) to {MAX_LATENCY_PERCENT}",
    )
    fairness: Literal["strict", "giving", "demand"] = Field(default="strict", description="one of these")

    def parameters(self) -> CriticalParameters:
        """As the policy takes them."""
        same = self.model_dump(exclude={"burst_us", "fairness"})
        return CriticalParameters(**same, burst_ns=self.burst_us * 1000, fairness=Fairness(self.fairness))


class OracleSection(Section):
    """Who is critical, for the policy `oracle` (experiments only)."""

    critical: tuple[str, ...] = Field(
        default=(), description='a list of names of threads such as ["main", "helper-*"]'
    )
    tids: tuple[Annotated[int, Field(ge=1, le=4194304)], ...] = Field(
        default=(), description="a list of thread ids such as [4711]"
    )

    def parameters(self) -> OracleParameters:
        """As the policy takes them."""
        return OracleParameters(self.critical, self.tids)


class BvtSection(Section):
    """Whom the policy `bvt` prefers, and how much (docs/rivals.md)."""

    critical: tuple[str, ...] = Field(
        default=BVT.critical, description='a list of names of workloads such as ["web-*"]'
    )
    latency_us: int = Field(default=BVT.latency_ns // 1000, ge=100, le=100_000, description=SLICE_US)
    limit_percent: int = Field(
        default=BVT.limit_percent, ge=1, le=100, description="a part of a period from 1 to 100"
    )
    unwarp_ms: int = Field(
        default=BVT.unwarp_ns // 1_000_000, ge=0, le=3_600_000, description="from 0 to 3600000 ms"
    )

    def parameters(self) -> BvtParameters:
        """As the policy takes them."""
        return BvtParameters(
            self.critical, self.latency_us * 1000, self.limit_percent, self.unwarp_ms * 1_000_000
        )


class PartiesSection(Section):
    """What the policy `parties` aims at, and how often it looks (docs/rivals.md)."""

    wait_percent: int = Field(
        default=PARTIES.wait_percent, ge=1, le=100, description="a part of runnable time from 1 to 100"
    )
    interval_ms: int = Field(
        default=PARTIES.interval_ns // 1_000_000, ge=10, le=3_600_000, description="from 10 to 3600000 ms"
    )

    def parameters(self) -> PartiesParameters:
        """As the policy takes them."""
        return PartiesParameters(self.wait_percent, self.interval_ms * 1_000_000)


class GuardSection(Section):
    """Keeps a policy from doing harm (docs/guard.md)."""

    enabled: bool = Field(default=True, description="true or false")
    harm_percent: int = Field(default=HARM_PERCENT, ge=1, le=100, description="an integer from 1 to 100")
    backoff_s: int = Field(default=BACKOFF_S, ge=1, le=86_400, description="from 1 to 86400 s")
    recheck_s: int = Field(default=RECHECK_S, ge=1, le=86_400, description="from 1 to 86400 s")

    def parameters(self, period_ms: int) -> GuardParameters | None:
        """As the guard takes them; None without one."""
        if not self.enabled:
            return None
        backoff, recheck = (max(1, each * 1000 // period_ms) for each in (self.backoff_s, self.recheck_s))
        return GuardParameters(self.harm_percent, backoff, recheck, period_ms * 1_000_000)


class RecordSection(Section):
    """How much of the record to keep."""

    max_mib: int = Field(
        default=64, ge=1, le=65536, description="the size of one file in MiB, from 1 to 65536"
    )
    files: int = Field(default=4, ge=1, le=1000, description="how many files to keep, from 1 to 1000")


class MatchSection(Section):
    """Every process whose name (comm) this is."""

    comm: str = Field(min_length=1, max_length=15, description="a process name of 1 to 15 characters")


class WorkloadSection(Section):
    """One VM, container or named set of processes that opts in."""

    name: Annotated[str, AfterValidator(_shown)] = Field(
        min_length=1, max_length=200, description="a name that no other workload has"
    )
    share: int | None = Field(default=None, ge=2, le=262144, description="an integer from 2 to 262144")
    pids: tuple[Annotated[int, Field(ge=1, le=4194304)], ...] | None = Field(
        default=None, min_length=1, description="a list of process ids such as [4711]"
    )
    cgroup: Annotated[str, AfterValidator(_cgroup)] | None = Field(
        default=None, description='a path from the hierarchy\'s root such as "/machine.slice/vm1.scope"'
    )
    match: MatchSection | None = Field(default=None, description='a table such as { comm = "memcached" }')
    libvirt: str | None = Field(
        default=None, min_length=1, description='a libvirt domain\'s name, or a pattern such as "web-*"'
    )


class LibvirtSection(Section):
    """What domains may say themselves (docs/libvirt.md)."""

    metadata: bool = Field(default=False, description="true or false")


class Config(Section):
    """Everything that the daemon was told, complete."""

    period_ms: int = Field(default=80, ge=10, le=1000, description="a period from 10 to 1000 ms")
    policy: Annotated[str, AfterValidator(_policy)] = Field(default="critical", description="")
    budget_percent: float = Field(
        default=budget.PERCENT, ge=0.1, le=100, description="a part of one core from 0.1 to 100 %"
    )
    dry_run: bool = Field(default=False, description="true or false")
    host: HostSection = HostSection()
    tsa: TsaSection = TsaSection()
    rla: RlaSection = RlaSection()
    rcr: RcrSection = RcrSection()
    critical: CriticalSection = CriticalSection()
    guard: GuardSection = GuardSection()
    oracle: OracleSection = OracleSection()
    bvt: BvtSection = BvtSection()
    parties: PartiesSection = PartiesSection()
    record: RecordSection = RecordSection()
    metrics: MetricsSection = MetricsSection()
    libvirt: LibvirtSection = LibvirtSection()
    workload: tuple[WorkloadSection, ...] = Field(
        default=(), description="at least one [[workload]] with a name and a selector"
    )

    def parameters(self) -> Parameters:
        """What the policies take."""
        return Parameters(
            self.tsa.parameters(),
            self.rla.parameters(),
            self.rcr.parameters(),
            self.critical.parameters(),
            self.guard.parameters(self.period_ms),
            oracle=self.oracle.parameters(),
            bvt=self.bvt.parameters(),
            parties=self.parties.parameters(),
        )


def load(path: Path) -> Config:
    """The configuration in `path`. Raises ConfigError."""
    try:
        raw = toml_file.read(path)
    except toml_file.NotToml as error:
        raise ConfigError([f"{path}: {error}"]) from error
    return check(raw, str(path))


def check(raw: Mapping[str, object], source: str) -> Config:
    """The configuration that `raw` gives, or every reason why it gives none."""
    complaints = [*_nobody(raw), *_selector_complaints(raw.get("workload"))]
    try:
        # By way of JSON, where an array may be a tuple although 1 is no true and "1" no 1.
        config = Config.model_validate_json(to_json(raw, inf_nan_mode="constants"))
    except ValidationError as error:
        complaints += complaints_of(error, Config)
    if complaints:
        raise ConfigError([f"{source}: {complaint}" for complaint in complaints])
    return config


def _nobody(raw: Mapping[str, object]) -> Iterator[Complaint]:
    """There must be somebody to manage: a workload, or domains that opt in by themselves."""
    libvirt = raw.get("libvirt")
    by_metadata = isinstance(libvirt, Mapping) and libvirt.get("metadata") is True
    if raw.get("workload", []) == [] and not by_metadata:
        mend = "give at least one [[workload]] with a name and a selector, or `metadata = true` in [libvirt]"
        yield Complaint("workload", "is missing", mend)


def _selector_complaints(workloads: object) -> Iterator[Complaint]:
    """What holds between keys: one selector each, and no name twice."""
    tables = workloads if isinstance(workloads, list) else []
    names = Counter(str(table["name"]) for table in tables if isinstance(table, dict) and "name" in table)
    for index, table in enumerate(tables):
        if not isinstance(table, dict):
            continue
        where = path_of(("workload", index))
        given = [selector for selector in SELECTORS if selector in table]
        if not given:
            yield Complaint(where, "selects nothing", "give one of `pids`, `cgroup`, `match` or `libvirt`")
        elif len(given) > 1:
            yield Complaint(where, f"has {len(given)} selectors: {', '.join(given)}", "keep one of them")
        if names[str(table.get("name"))] > 1:
            yield Complaint(
                f"{where}.name", f"{table['name']!r} is taken more than once", "give another name"
            )
