"""The configuration: TOML, checked whole before the first effect; every error at once, one line each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import AfterValidator, Field, ValidationError, create_model, model_validator
from pydantic_core import to_json

from ..guard.parameters import BACKOFF_S, HARM_PERCENT, RECHECK_S, GuardParameters
from ..hosts.host import DEEPEST_VM_LEVEL, MOST_THREADS, ROOM, VM_LEVEL
from ..hosts.open import AUTO, BACKENDS
from ..linux import cpulist
from ..model import NEUTRAL_WEIGHT
from ..policies import POLICIES, TABLES, Parameters, unlike_default
from ..reservations.grants import CpuClass, Principle
from ..reservations.parameters import Booking, ReservationParameters
from . import toml_file
from .complaints import Complaint, complaints_of, meant, nearest, path_of
from .metrics import MetricsSection
from .section import Section
from .tables import section_of

BACKEND_NAMES = (AUTO, *BACKENDS)
OWN_SCHEDULERS = tuple(name for name, each in BACKENDS.items() if each.own_scheduler)
SELECTORS = ("pids", "cgroup", "match", "libvirt", "container")
MOST_COMM_BYTES = 15
"""TASK_COMM_LEN of the kernel, without the NUL."""
WILDCARDS = frozenset("*?[")
ENGINES = ("docker", "containerd", "k8s", "podman", "lxc", "incus", "lxd", "nspawn")
"""As in workloads/containers/engines.py and systems.py."""


class ConfigError(Exception):
    """The configuration cannot be used; `lines` says why, one error each."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


def _policy(name: str) -> str:
    if name not in POLICIES:
        raise ValueError(f"no policy named {name!r} in this build: {nearest(name, POLICIES)}")
    return name


def _each_once(pids: tuple[int, ...]) -> tuple[int, ...]:
    if repeated := [pid for pid, times in Counter(pids).items() if times > 1]:
        raise ValueError(f"has {repeated[0]} more than once")
    return pids


def _cpus(text: str) -> str:
    if not cpulist.parse(text):
        raise ValueError("names no CPU")
    return text


def _cgroup(path: str) -> str:
    if not path.startswith("/") or ".." in path.split("/") or "\0" in path:
        raise ValueError(f"{path!r} is not a path from the hierarchy's root")
    return path


def _top_cgroup(name: str) -> str:
    if "/" in name or "\0" in name or name in (".", ".."):
        raise ValueError(f"{name!r} is no name of a group at the top of the hierarchy")
    return name


def _shown(name: str) -> str:
    if not name.isprintable():
        raise ValueError(f"{name!r} has characters that cannot be shown")
    return name


def _comm(name: str) -> str:
    if len(name.encode()) > MOST_COMM_BYTES:
        raise ValueError(
            f"{name!r} has more than {MOST_COMM_BYTES} bytes, which is all that the kernel keeps"
        )
    return name


def _container(pattern: str) -> str:
    engine, colon, name = pattern.partition(":")
    if not colon or not name:
        raise ValueError(f"{pattern!r} is not ENGINE:NAME, such as docker:web-*")
    if engine not in ENGINES:
        raise ValueError(f"no engine named {engine!r} in this build: {nearest(engine, ENGINES)}")
    if engine == "k8s" and name.count("/") != 2 and not WILDCARDS & set(name):
        raise ValueError(f"{pattern!r} is not k8s:NAMESPACE/POD/CONTAINER")
    return pattern


def _backend(name: str) -> str:
    if name not in BACKEND_NAMES:
        raise ValueError(f"no backend named {name!r} in this build: {nearest(name, BACKEND_NAMES)}")
    return name


class HostSection(Section):
    """Which kernel interface, which cores, and what we may do there. What is for our own scheduler only is
    refused with another backend: whoever wrote it believes that it is in force."""

    backend: Annotated[str, AfterValidator(_backend)] = Field(
        default=AUTO, description=f"one of {', '.join(BACKEND_NAMES)}"
    )
    cpus: Annotated[str, AfterValidator(_cpus)] | None = Field(
        default=None, description='a list of CPUs such as "0-3,8"'
    )
    vm_level: int = Field(
        default=VM_LEVEL, ge=1, le=DEEPEST_VM_LEVEL, description=f"a depth from 1 to {DEEPEST_VM_LEVEL}"
    )
    partial: bool = Field(default=False, description="true or false")
    own_cgroups: bool = Field(default=False, description="true or false")
    nice: bool = Field(default=True, description="true or false")
    bpf: bool = Field(default=True, description="true or false")
    keeper_cgroup: Annotated[str, AfterValidator(_top_cgroup)] = Field(
        default="", max_length=255, description="the name of a cgroup at the top of the hierarchy"
    )
    weights: Literal["auto", "on", "off"] = Field(default="auto", description='"auto", "on" or "off"')
    on_foreign_write: Literal["yield", "reapply", "alert"] = Field(
        default="yield", description='"yield", "reapply" or "alert"'
    )
    max_threads_per_workload: int = Field(
        default=MOST_THREADS, ge=1, le=ROOM, description=f"a count from 1 to {ROOM}"
    )

    @model_validator(mode="after")
    def _serves(self) -> Self:
        told = {"partial": self.partial, "vm_level": self.vm_level != VM_LEVEL}
        key = next((key for key, other in told.items() if other), None)
        if key is not None and self.backend not in OWN_SCHEDULERS:
            only = " or ".join(OWN_SCHEDULERS)
            raise ValueError(f'`{key}` goes with backend = "{only}" only, not "{self.backend}"')
        return self


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

    comm: Annotated[str, AfterValidator(_comm)] = Field(
        min_length=1,
        max_length=MOST_COMM_BYTES,
        description=f"a process name of 1 to {MOST_COMM_BYTES} bytes, as /proc/PID/comm has it",
    )


class WorkloadSection(Section):
    """One VM, container or named set of processes that opts in."""

    name: Annotated[str, AfterValidator(_shown)] = Field(
        min_length=1, max_length=200, description="a name of 1 to 200 characters that no other workload has"
    )
    share: int | None = Field(default=None, ge=2, le=262144, description="an integer from 2 to 262144")
    pids: (
        Annotated[tuple[Annotated[int, Field(ge=1, le=4194304)], ...], AfterValidator(_each_once)] | None
    ) = Field(default=None, min_length=1, description="a list of process ids such as [4711]")
    cgroup: Annotated[str, AfterValidator(_cgroup)] | None = Field(
        default=None, description='a path from the hierarchy\'s root such as "/machine.slice/vm1.scope"'
    )
    match: MatchSection | None = Field(default=None, description='a table such as { comm = "memcached" }')
    libvirt: str | None = Field(
        default=None, min_length=1, description='a libvirt domain\'s name, or a pattern such as "web-*"'
    )
    container: Annotated[str, AfterValidator(_container)] | None = Field(
        default=None, description='an engine and a name or pattern such as "docker:web-*"'
    )
    cpu: Literal["shared", "exclusive", "whole"] | None = Field(
        default=None, description='"shared", "exclusive" or "whole"'
    )
    cpus: float | None = Field(
        default=None, ge=0.001, le=8192, description="an amount of CPUs from 0.001 to 8192"
    )

    def booking(self) -> Booking | None:
        """What is to be reserved for each workload that this finds."""
        if self.cpus is None:
            return None
        named = escape(self.name)  # as discovery calls them: workloads/libvirt, workloads/containers
        if self.container is not None and WILDCARDS & set(self.container):
            named = self.container
        elif self.libvirt is not None and WILDCARDS & set(self.libvirt):
            named = f"{named}/{self.libvirt}"
        return Booking(named, max(1, round(self.cpus * 1000)), CpuClass(self.cpu or CpuClass.SHARED))


class ReservationsSection(Section):
    """How workloads get CPUs of their own (docs/reservations.md)."""

    principle: Literal["hard", "best-effort"] = Field(default="hard", description='"hard" or "best-effort"')
    apart: bool = Field(default=False, description="true or false")


class LibvirtSection(Section):
    """What domains may say themselves, and what is managed of each (docs/libvirt.md)."""

    metadata: bool = Field(default=False, description="true or false")
    emulator: Literal["never", "follow"] = Field(default="never", description='"never" or "follow"')


class ContainersSection(Section):
    """What containers may say themselves (docs/containers.md)."""

    annotations: bool = Field(default=False, description="true or false")
    most_share: int = Field(
        default=NEUTRAL_WEIGHT, ge=2, le=262144, description="an integer from 2 to 262144"
    )
    most_cpus: float = Field(default=0, ge=0, le=8192, description="an amount of CPUs from 0 to 8192")

    @model_validator(mode="after")
    def _may_ask(self) -> Self:
        if self.most_cpus and not self.annotations:
            raise ValueError("`most_cpus` goes with annotations = true only")
        return self


CONSENTS: Sequence[tuple[str, type[Section], str]] = (
    ("libvirt", LibvirtSection, "metadata"),
    ("containers", ContainersSection, "annotations"),
)
"""By which tables and keys somebody who is not named may opt in."""


if TYPE_CHECKING:
    PolicyTables = Section
else:
    _SECTIONS = {name: section_of(kind) for name, kind in TABLES.items()}
    PolicyTables = create_model(
        "PolicyTables", __base__=Section, **{name: (each, each()) for name, each in _SECTIONS.items()}
    )


class Config(PolicyTables):
    """Everything that the daemon was told, complete: with a table for each class of settings of a policy."""

    period_ms: int = Field(default=80, ge=10, le=1000, description="a period from 10 to 1000 ms")
    policy: Annotated[str, AfterValidator(_policy)] = Field(
        default="critical", description='the name of a policy such as "critical"'
    )
    budget_percent: float | None = Field(
        default=None, ge=0.1, le=100, description="a part of one core from 0.1 to 100 %"
    )
    dry_run: bool = Field(default=False, description="true or false")
    host: HostSection = HostSection()
    guard: GuardSection = GuardSection()
    record: RecordSection = RecordSection()
    metrics: MetricsSection = MetricsSection()
    libvirt: LibvirtSection = LibvirtSection()
    containers: ContainersSection = ContainersSection()
    reservations: ReservationsSection = ReservationsSection()
    workload: tuple[WorkloadSection, ...] = Field(
        default=(), description="at least one [[workload]] with a name and a selector"
    )

    def parameters(self) -> Parameters:
        """What the policies take."""
        told = (getattr(self, name).parameters() for name in TABLES)
        return Parameters(
            unlike_default(told), self.guard.parameters(self.period_ms), self._reservation_parameters()
        )

    def _reservation_parameters(self) -> ReservationParameters | None:
        """None where nobody asks for any."""
        asks = tuple(booking for each in self.workload if (booking := each.booking()) is not None)
        told, containers = self.reservations, self.containers
        by_themselves = round(1000 * containers.most_cpus) if containers.annotations else 0
        if not asks and not by_themselves:
            return None
        return ReservationParameters(asks, Principle(told.principle), told.apart, by_themselves)


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


def _given(table: Mapping[str, object], schema: type[Section], key: str) -> list[object]:
    """What stands under this key, or under an unknown one that is like it: of that there is a complaint."""
    known = sorted(schema.model_fields)
    names = (name for name in table if name == key or (name not in known and meant(name, known) == key))
    return [table[name] for name in names]


def _nobody(raw: Mapping[str, object]) -> Iterator[Complaint]:
    """There must be somebody to manage: a workload, or domains that opt in by themselves."""
    consents = (
        consent
        for name, schema, key in CONSENTS
        for table in _given(raw, Config, name)
        if isinstance(table, Mapping)
        for consent in _given(table, schema, key)
    )
    nobody = all(workloads == [] for workloads in _given(raw, Config, "workload"))
    if nobody and all(consent is False for consent in consents):  # what is neither has a complaint of its own
        mend = (
            "give at least one [[workload]] with a name and a selector, or `metadata = true` in [libvirt], "
            "or `annotations = true` in [containers]"
        )
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
        if not any(_given(table, WorkloadSection, selector) for selector in SELECTORS):
            yield Complaint(
                where, "selects nothing", "give one of `pids`, `cgroup`, `match`, `libvirt` or `container`"
            )
        elif len(given) > 1:
            yield Complaint(where, f"has {len(given)} selectors: {', '.join(given)}", "keep one of them")
        if "cpu" in table and not _given(table, WorkloadSection, "cpus"):
            yield Complaint(f"{where}.cpu", "says for whom, not how much", "give `cpus`, such as 2.5, too")
        if names[str(table.get("name"))] > 1:
            yield Complaint(
                f"{where}.name", f"{table['name']!r} is taken more than once", "give another name"
            )
