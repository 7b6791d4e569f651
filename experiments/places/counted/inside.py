"""In the guest: the services on their own cores, what measures on the one after them, and each run told to
the host as a line of JSON on the console."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from dasec.errors import Refusal
from dasec.lab.kit.arms import has_daemon, policy_of, settings_of
from dasec.lab.kit.bench import RunPlan, record_name
from dasec.lab.kit.results import RunResult
from dasec.lab.kit.tree import Tree
from dasec.lab.kit.workspace import prepared
from dasec.linux.cgroupfs import find_hierarchy

from ...plan.word import word_of
from .cpus import Cpus, mask_of

RUN = "RUN:"
RECORD = "RECORD:"
SERVICE_CPUS, CLIENT_CPUS = Path("/run/service-cpus"), Path("/run/client-cpus")
"""Masks: the wrappers of programs (image.py) start services there, and whoever asks them."""


@dataclass(frozen=True, slots=True)
class SeatedTree(Tree):
    """Whoever feeds a service keeps to the core of clients, and goes first there, under any scheduler
    (docs/decisions/0085-feeders-first.md); the service's own threads stay away."""

    clients: frozenset[int] = frozenset()
    """Its CPUs; none: those of this process."""

    def place_process(self, pid: int, name: str) -> None:
        """Into the group, and to where clients are."""
        super(SeatedTree, self).place_process(pid, name)  # a class with slots is made anew
        os.sched_setaffinity(pid, self.clients or os.sched_getaffinity(0))
        os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(1))


class PinnedTree(SeatedTree):
    """Every vCPU keeps to one of the services' cores: the first to the first, and so on in turn."""

    __slots__ = ()

    def place(self, tid: int, name: str) -> None:
        """Into the group, whose name ends with the vCPU's number, and to the core."""
        super().place(tid, name)
        number = int(name.rpartition("vcpu")[2])
        cores = max(os.sched_getaffinity(0))  # this process has the core after them
        os.sched_setaffinity(tid, {number % cores})


@dataclass(frozen=True, slots=True)
class Site:
    """Where runs happen."""

    tree: SeatedTree
    directory: Path


@contextlib.contextmanager
def site(cpus: Cpus) -> Iterator[Site]:
    """This process, and the daemon that it starts, keep to the core of what measures."""
    SERVICE_CPUS.write_text(f"{mask_of(range(cpus.services))}\n", encoding="ascii")
    CLIENT_CPUS.write_text(f"{mask_of(cpus.clients)}\n", encoding="ascii")
    os.sched_setaffinity(0, {cpus.measuring})
    usual = Tree.of(find_hierarchy())
    tree = SeatedTree(usual.version, usual.top, usual.name, frozenset(cpus.clients))
    with prepared(tree) as directory:
        yield Site(tree, directory)


def unhurried(plan: RunPlan) -> RunPlan:
    """Without a cost budget: the daemon has a core here that serves nobody else, and is a tenth as fast as
    those that the budget is made for."""
    policies = {policy_of(arm) for arm in plan.arms if has_daemon(arm)}
    told = {policy: plan.settings.get(policy, settings_of(policy)) for policy in policies}
    return replace(
        plan, settings={policy: f"budget_percent = 100\n{settings}" for policy, settings in told.items()}
    )


def tell(run: RunResult, cpus: Cpus, records: Path | None = None) -> None:
    """One line, without the histograms: the figures are kept, and the console is slow. Busy are the services'
    cores, by what the services used: the kernel's own count has the last core in it. The daemon's record of
    the run, if it is in that folder, goes before it as another line, and is gone."""
    record = records and records / record_name(run.arm, run.repetition)
    if record and record.exists():
        print(f"{RECORD}{record.name} {word_of(record.read_bytes())}", flush=True)
        record.unlink()
    tenants = tuple(replace(one, latencies=replace(one.latencies, hdr="")) for one in run.tenants)
    busy = sum(tenant.cores for tenant in run.tenants) / cpus.services
    print(RUN + json.dumps(asdict(replace(run, tenants=tenants, busy=busy, other_cores=0.0))), flush=True)


def refusing(main: Callable[[], None]) -> None:
    """Run it; a refusal is its lines and its status."""
    try:
        main()
    except Refusal as refusal:
        print(*refusal.lines, sep="\n")
        sys.exit(refusal.status)
