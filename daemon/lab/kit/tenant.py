"""One workload's processes in one run: started, their threads put where they belong, results read."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

from ...errors import Refusal
from .. import load_tool
from .errors import StartMissed, failure
from .facts import thread_cpu_s
from .layout import BACKGROUND, CLIENT, GroupLayout, emulator_group, home_of, vcpu_group, vcpu_threads
from .process import ensure_alive, free_port, last_line, listens, named_threads, read_json, start, wait_until
from .results import TenantResult
from .scenario import Memcached, Service, Tenant, Timing, beside, load_arguments
from .tree import Tree

START_PATIENCE_S = 30.0
UNAWAITED = (BACKGROUND, "logger", "peer-")
"""How the names of threads begin that no request waits for (experiments/load/src/background.h)."""

START_OPTION = "--start-at-ns"

DRAIN_S = 5.0
"""How long a request may still take when the schedule ends. What has no answer then has waited at
least so long, and counts as exactly so long: left out, the slowest requests would flatter the mean."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where and how all workloads of a run are started."""

    tree: Tree
    layout: GroupLayout
    tool: Path
    memcached: Path
    directory: Path


@dataclass(frozen=True, slots=True)
class CpuUsed:
    """CPU time of a workload's threads, and of those that no request waits for, at that time."""

    at_ns: int
    threads: int
    total_s: float
    background_s: float


@dataclass(frozen=True, slots=True)
class Running:
    """A workload that runs: the process that is measured, and the load tool (the same for a service). A
    memcached may have background beside it, in a process of its own."""

    tenant: Tenant
    server: subprocess.Popen[bytes]
    tool: subprocess.Popen[bytes]
    files: Path
    beside: Running | None = None

    def result(self, server_cores: float) -> TenantResult:
        """What the load tool measured. A service is the load tool itself, which counts its own CPU
        time; a server outlives the load and was watched from outside (`server_cores`)."""
        status = self.tool.returncode
        if status != 0:
            raise failure(f"{self.tenant.name}: load tool: exit status {status}: {self.last_words()}")
        result = read_json(self.files / "out.json")
        unfinished = int(load_tool.figure(result, "unfinished"))
        answered = load_tool.read_sojourns(self.files / "samples")
        if not answered and not unfinished and not self.is_batch:
            raise failure(f"{self.tenant.name}: no request was answered: {self.last_words()}")
        window_s = load_tool.figure(result, "cpu", "window_s")
        own = TenantResult(
            self.tenant.name,
            load_tool.latencies([*answered, *[int(DRAIN_S * 1e9)] * unfinished]),
            load_tool.figure(result, "throughput_per_s"),
            unfinished,
            int(load_tool.figure(result, "errors")),
            int(load_tool.figure(result, "late_sends")),
            server_cores if self.has_client else load_tool.figure(result, "cpu", "total_s") / window_s,
            0.0 if self.has_client else load_tool.figure(result, "background", "cpu_s"),
            0.0 if self.has_client else load_tool.figure(result, "background", "cpu_s") / window_s,
        )
        if self.beside is None:
            return own
        other = self.beside.result(0.0)
        return replace(
            own,
            cores=own.cores + other.cores,
            background_cpu_s=other.background_cpu_s,
            background_cores=other.background_cores,
        )

    def ensure_alive(self, end_ns: int = sys.maxsize) -> None:
        """Refusal with its last words if the workload or its load ended early: with an error, or before
        `end_ns`; whoever looks may be late, too. StartMissed if the time that was set for the start was over
        before it was ready."""
        try:
            ensure_alive(self.server, self.tenant.name, self.server_log, end_ns)
            ensure_alive(self.tool, f"{self.tenant.name}: load tool", self.files / "tool.log", end_ns)
        except Refusal as refusal:
            if START_OPTION in self.last_words():
                raise StartMissed from refusal
            raise
        if self.beside:
            self.beside.ensure_alive(end_ns)

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes that make up the workload."""
        return (self.server.pid, *(self.beside.pids if self.beside else ()))

    @property
    def tools(self) -> tuple[subprocess.Popen[bytes], ...]:
        """The load tools, which end by themselves."""
        return (self.tool, *(self.beside.tools if self.beside else ()))

    @property
    def is_batch(self) -> bool:
        """Does it answer no requests?"""
        return isinstance(self.tenant, Service) and self.tenant.is_batch

    def cpu(self) -> CpuUsed | None:
        """What its threads have used so far; None if some of them have ended."""
        at_ns = time.monotonic_ns()
        try:
            used = [(name, thread_cpu_s(pid, tid)) for pid, tid, name in self.threads()]
        except OSError:
            return None
        background_s = sum(spent_s for name, spent_s in used if name.startswith(UNAWAITED))
        return CpuUsed(at_ns, len(used), sum(spent_s for _, spent_s in used), background_s)

    def threads(self) -> tuple[tuple[int, int, str], ...]:
        """Process id, thread id and name of every thread of the workload."""
        return tuple((pid, tid, name) for pid in self.pids for tid, name in named_threads(pid))

    @property
    def critical(self) -> tuple[str, ...]:
        """Names of the threads that requests wait for."""
        return self.tenant.critical

    @property
    def server_log(self) -> Path:
        """What the measured process says."""
        return self.files / ("server.log" if self.has_client else "tool.log")

    def client_cpu_s(self) -> float:
        """What a client apart from the workload used; a service makes its requests itself."""
        return (
            load_tool.figure(read_json(self.files / "out.json"), "cpu", "total_s") if self.has_client else 0.0
        )

    @property
    def has_client(self) -> bool:
        """Is the load a process of its own?"""
        return self.server is not self.tool

    def last_words(self) -> str:
        """The load tool's last line."""
        return last_line(self.files / "tool.log")


def start_server(place: Place, tenant: Memcached, log: Path) -> tuple[subprocess.Popen[bytes], int]:
    """A memcached that accepts connections, and its port."""
    port = free_port()
    command = [str(place.memcached), "-u", "nobody", "-l", "127.0.0.1", "-p", str(port), "-U", "0"]
    command += ["-t", str(tenant.threads), "-m", "64"]
    server = start(place.tree, home_of(tenant, place.layout), command, log)

    def accepts() -> bool:
        ensure_alive(server, tenant.name, log)
        return listens(port)

    wait_until(accepts, f"{tenant.name}: accepts connections", START_PATIENCE_S)
    return server, port


@dataclass(frozen=True, slots=True)
class Orders:
    """What the load of a workload does in a run, and when it begins."""

    timing: Timing
    seed: int
    calibration: float
    start_at_ns: int


def start_tenant(place: Place, tenant: Tenant, orders: Orders) -> Running:
    """The workload and its load."""
    files, command = _command(place, tenant, orders)
    home = home_of(tenant, place.layout)
    if isinstance(tenant, Memcached):
        server, port = start_server(place, tenant, files / "server.log")
        command += ["--port", str(port), "--drain-seconds", f"{DRAIN_S:g}"]
        tool = start(place.tree, CLIENT, command, files / "tool.log")
        return Running(tenant, server, tool, files, _start_beside(place, tenant, home, orders))
    tool = start(place.tree, home, command, files / "tool.log")
    return Running(tenant, tool, tool, files)


def _command(place: Place, tenant: Tenant, orders: Orders) -> tuple[Path, list[str]]:
    """The directory of a load's files, made, and how the load tool is called."""
    files = place.directory / tenant.name
    files.mkdir()
    command = [str(place.tool), *load_arguments(tenant, orders.timing, orders.seed, orders.calibration)]
    command += [START_OPTION, str(orders.start_at_ns)]
    for option, name in (("--out", "out.json"), ("--samples", "samples"), ("--ready", "ready")):
        command += [option, str(files / name)]
    return files, command


def _start_beside(place: Place, tenant: Memcached, home: str, orders: Orders) -> Running | None:
    """The background of a memcached, if it has any; in the same groups."""
    if not tenant.background:
        return None
    other = beside(tenant)
    files, command = _command(place, other, orders)
    tool = start(place.tree, home, command, files / "tool.log")
    return Running(other, tool, tool, files)


def settle(place: Place, running: Running) -> None:
    """Once it is ready: every vCPU thread into its own group, all other threads into the emulator's."""
    _await_ready(running)
    if isinstance(running.tenant, Service) and running.tenant.fed:
        feeder = int(load_tool.figure(read_json(running.files / "ready"), "feeder_pid"))
        place.tree.place_process(feeder, CLIENT)
    threads = tuple((tid, name) for _, tid, name in running.threads())
    vcpus = vcpu_threads(running.tenant, threads)
    if len(vcpus) != running.tenant.vcpus:
        names = ", ".join(name for _, name in threads)
        raise failure(f"{running.tenant.name}: {running.tenant.vcpus} vCPU threads expected among: {names}")
    for index, tid in enumerate(vcpus):
        place.tree.place(tid, vcpu_group(running.tenant, place.layout, index))
    for tid, _ in threads:
        if tid not in vcpus:
            place.tree.place(tid, emulator_group(running.tenant, place.layout))


def _await_ready(running: Running) -> None:
    parts = [part for part in (running, running.beside) if part]

    def ready() -> bool:
        running.ensure_alive()
        return all((part.files / "ready").exists() for part in parts)

    wait_until(ready, f"{running.tenant.name}: ready", START_PATIENCE_S)
