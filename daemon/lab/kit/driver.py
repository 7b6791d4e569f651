"""What a run knows of an application: how it is asked for, started, told to begin, and what it yields.

A run goes `start` (its processes are there) -> `await_up` (nobody asks it anything yet) -> `begin` (the time
at which requests or work begin, the same for all applications of a run) -> `finish` -> `stop`. Between
`await_up` and `begin` the run puts threads into their groups and attaches a policy to `pids()`.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from ..load_tool import Latencies

HERE, CGROUP, CONTAINER, DOCKER, GUEST = "here", "cgroup", "container", "docker", "guest"
"""Names of places."""

NO_OPTIONS: Mapping[str, str] = MappingProxyType({})

DRAIN_S = 5.0
"""How long a request may still take when the schedule ends. What has no answer then has waited at
least so long, and counts as exactly so long: left out, the slowest requests would flatter the mean. So does
what failed, or was lost with its connection."""


class WorkKind(StrEnum):
    """What is judged of an application."""

    SERVICE = "service"
    """Its latencies: requests arrive by a schedule, however long it takes."""
    BATCH = "batch"
    """How much it gets done."""


class Role(StrEnum):
    """Whether a process is what is measured, or asks it."""

    WORKLOAD = "workload"
    CLIENT = "client"


@dataclass(frozen=True, slots=True)
class WorkOrder:
    """One application of one run. Everything random follows from `seed`."""

    name: str
    """Of this instance; unlike that of any other in the run."""
    threads: int
    rate_per_s: float
    """Requests a second of a service; 0: as fast as it can, which only batch work understands."""
    seed: int
    warmup_s: float
    seconds: float
    """Measured, after the warm-up."""
    folder: Path
    """There, and of this order alone: raw results and logs. The driver makes it."""
    options: Mapping[str, str] = field(default_factory=lambda: NO_OPTIONS)
    """The driver's own; one that it does not know is refused."""
    calibration: float = 0.0
    """Iterations of the load tool's work loop a microsecond; 0: it finds out, alone on the host."""

    @property
    def total_s(self) -> float:
        """From the beginning to the end of the measured part."""
        return self.warmup_s + self.seconds


@dataclass(frozen=True, slots=True)
class OwnCpu:
    """What processes say of their own CPU time, for those that ended before they were looked at.
    `waiting`: how many of their threads were ready and waited, on average."""

    cores: float
    background_cores: float = 0.0
    pids: frozenset[int] = frozenset()
    waiting: float = 0.0


@dataclass(frozen=True, slots=True)
class WorkDone:
    """What an application did in the measured part. Files lie in the order's folder."""

    work: float
    """Requests that were answered, or work that was done."""
    unit: str
    """Of `work`: "requests", "events", "bogo ops", ..."""
    seconds: float
    """In which the work was done, by the application's own account."""
    latencies: Latencies | None = None
    """From the scheduled arrival; with the HDR histogram. None: it has none."""
    samples: Path | None = None
    """uint64 (queue, service, sojourn) ns of each request, as `dasec load` and TailBench write them."""
    arrivals: Path | None = None
    """uint64 ns offsets from the beginning at which requests were due, warm-up included. None: the
    application keeps no times, and `notes` says so where it has requests."""
    errors: int = 0
    unfinished: int = 0
    late_sends: int = 0
    client_cpu_s: float = 0.0
    """What a client outside the workload used."""
    own_cpu: tuple[OwnCpu, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)
    """Further numbers that the application prints, under its own names and in its units."""
    notes: tuple[str, ...] = ()
    """What a reader of these numbers has to know."""

    @property
    def per_s(self) -> float:
        """Work a second."""
        return self.work / self.seconds if self.seconds > 0 else 0.0


class Place(Protocol):
    """Where processes live: a cgroup, a container, a virtual machine."""

    @property
    def name(self) -> str:
        """Of the kind of place."""

    @property
    def listens_at(self) -> str:
        """The address that a service has to take connections at; clients reach it at 127.0.0.1."""

    def start(
        self, command: Sequence[str], log: Path, role: Role = Role.WORKLOAD, serves: Sequence[int] = ()
    ) -> subprocess.Popen[bytes]:
        """Starts a command in its group: it is there before its first instruction. Standard input is a pipe,
        output goes to `log`. A client is never in the workload's group, container or guest. `serves` are the
        TCP ports that the workload takes connections at."""

    def pids(self, child: subprocess.Popen[bytes]) -> tuple[int, ...]:
        """The living processes of what was started, as this host numbers them, without what only holds a
        container; of a virtual machine QEMU."""

    def take_out(self, pid: int) -> None:
        """A process that the workload itself has started turns out to be a client: to where clients are.
        Refusal where nobody can."""


class RunningWork(Protocol):
    """An application whose processes are there."""

    def await_up(self) -> None:
        """Returns when it could take requests, or begin. Refusal if it does not come up."""

    def pids(self) -> tuple[int, ...]:
        """The workload's processes now, clients left out; empty for one that is not ours. Some applications
        start theirs only when they begin."""

    def begin(self, start_ns: int) -> None:
        """Tells it the CLOCK_MONOTONIC time at which warm-up begins; does not wait for it. Once."""

    def ensure_alive(self) -> None:
        """Refusal, with its last words, if it ended before its time."""

    def finish(self) -> WorkDone:
        """Waits for the end of the order's time, and for late answers. Refusal if it failed."""

    def stop(self) -> None:
        """Ends what is left of it, by force. Idempotent."""


class Driver(Protocol):
    """How one application is run."""

    @property
    def name(self) -> str:
        """As in experiment files and in reports."""

    @property
    def kind(self) -> WorkKind:
        """What is judged."""

    def missing(self) -> str | None:
        """Why it cannot run here, in one line that says what to do; None: it can."""

    def vcpus(self, order: WorkOrder) -> int:
        """How many threads compete for cores: what counts for the consolidation ratio."""

    def critical(self, order: WorkOrder) -> tuple[str, ...]:
        """The names of the threads that requests wait for (`*`: any end); empty: not known, so the oracle is
        not defined. Refusal on options that it does not understand."""

    def start(self, order: WorkOrder, place: Place) -> RunningWork:
        """Starts its processes. Refusal if it cannot do what the order says; then nothing is left."""
