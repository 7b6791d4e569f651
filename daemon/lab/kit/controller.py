"""The real daemon as a process of its own, so that its CPU time is part of the result."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ...bpf.libbpf import BpfUnavailable
from ...bpf.scx import Scheduler, options
from ...errors import Refusal
from ...reservations.grants import CpuClass
from ...safety.verify import our_groups, verify
from .arms import SCX
from .errors import failure
from .process import ensure_alive, last_line, start, wait_until
from .tree import DAEMON, Tree
from .untouched import ours

BEGIN_PATIENCE_S = 60.0
"""On a busy machine it is late, which nobody measures."""

STATUS, STATUS_PATIENCE_S = "status.json", 3.0
"""It is written once a second."""

STOP_PATIENCE_S = 20.0
"""On a host whose other work leaves us next to nothing, 5 s were not enough."""


@dataclass(frozen=True, slots=True)
class Report:
    """How often the daemon applied each outcome, and what troubles it has (a policy that sees no wake-ups
    would be taken for harmless and useless)."""

    decided: Mapping[str, int] = field(default_factory=dict)
    troubles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Controller:
    """A running daemon."""

    policy: str
    process: subprocess.Popen[bytes]
    log: Path
    state: Path

    def ensure_alive(self) -> None:
        """Refusal with its last words if it ended by itself."""
        ensure_alive(self.process, f"dasec run, policy {self.policy}", self.log)

    def await_begun(self) -> None:
        """Until it has said its first line: a run without it would be taken for harmless and useless."""

        def begun() -> bool:
            self.ensure_alive()
            return self.log.stat().st_size > 0

        wait_until(begun, f"dasec run, policy {self.policy}: begins", BEGIN_PATIENCE_S)

    def report(self) -> Report:
        """What its status file says now, or first says after a short run; nothing if it does not report."""
        with contextlib.suppress(Refusal):
            wait_until((self.state / STATUS).exists, "status", STATUS_PATIENCE_S)
        try:
            status = json.loads((self.state / STATUS).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return Report()
        rules = {f"rule {rule}": int(count) for rule, count in status["changes_by_rule"].items()}
        outcomes = {str(outcome): int(count) for outcome, count in status["outcomes"].items()}
        periods = {"periods": int(status["periods"]), "late periods": int(status["late_periods"])}
        return Report(rules | outcomes | periods, tuple(map(str, status["troubles"])))


class Reserved(NamedTuple):
    """So many CPUs that a workload wants for itself, and how."""

    cpu_class: CpuClass
    cpus: float


@dataclass(frozen=True, slots=True)
class Managed:
    """A workload as the daemon's configuration names it: by libvirt's name, a container's, a group, or its
    processes."""

    name: str
    share: int
    pids: tuple[int, ...]
    cgroup: str | None = None
    libvirt: str | None = None
    container: str | None = None
    reserved: Reserved | None = None

    def table(self) -> list[str]:
        """Its lines in the configuration. Of a domain libvirt knows the share, of a container its engine."""
        lines = ["", "[[workload]]", f"name = {json.dumps(self.name)}"]
        if self.libvirt is not None:
            return [*lines, f"libvirt = {json.dumps(self.libvirt)}"]
        if self.container is not None:
            return [*lines, f"container = {json.dumps(self.container)}"]
        selector = (
            f"pids = {list(self.pids)}" if self.cgroup is None else f"cgroup = {json.dumps(self.cgroup)}"
        )
        if self.reserved is not None:
            lines += [f'cpu = "{self.reserved.cpu_class}"', f"cpus = {self.reserved.cpus:g}"]
        return [*lines, f"share = {self.share}", selector]


def configuration(policy: str, workloads: Sequence[Managed], settings: str | None = None) -> str:
    """The daemon's configuration: the policy with its defaults, or these settings, and every workload.

    What is measured is the policy itself, unless the settings say what the guard shall do."""
    lines = [f"policy = {json.dumps(policy)}" if settings is None else settings]
    lines += [] if settings is not None and "[guard]" in settings else ["", "[guard]", "enabled = false"]
    for workload in workloads:
        lines += workload.table()
    return "\n".join(lines) + "\n"


@contextlib.contextmanager
def running(
    tree: Tree,
    directory: Path,
    policy: str,
    told: str,
    record: Path | None = None,
    inside: Sequence[str] = (),
) -> Iterator[Controller]:
    """The daemon, so configured, runs while the block does; it must put everything back at the end.
    `inside` is what a command begins with that shall see a libvirtd in a namespace of its own."""
    config, log, state = directory / "dasec.toml", directory / "daemon.log", directory / "state"
    config.write_text(told, encoding="utf-8")
    command = [*inside, sys.executable, "-P", "-m", "dasec", "run"]
    command += ["--config", str(config), "--directory", str(state)]
    command += ["--record", str(record)] if record else []
    process = start(tree, DAEMON, command, log)
    controller = Controller(policy, process, log, state)
    yield controller
    controller.ensure_alive()
    process.send_signal(signal.SIGTERM)
    try:
        status = process.wait(STOP_PATIENCE_S)
    except subprocess.TimeoutExpired:
        raise failure(f"dasec run, policy {policy}: has not stopped within {STOP_PATIENCE_S:g} s") from None
    if status != 0:
        raise failure(f"dasec run, policy {policy}: exit status {status}: {last_line(log)}")
    for finding in ours(verify(state), our_groups()):
        raise failure(f"dasec run, policy {policy}: not put back: {finding}")


@contextlib.contextmanager
def scheduled(vm_level: int) -> Iterator[None]:
    """Our sched_ext scheduler, and no daemon; groups at this depth are VMs. Refusal if it did not last."""
    try:
        with Scheduler(options(vm_level)) as scheduler:
            yield
            why = scheduler.ended()
    except BpfUnavailable as error:
        raise failure(f"{SCX}: {error}") from error
    if why is not None:
        raise failure(f"{SCX}: the kernel put it out: {why}")
