"""A client outside of every guest, and one inside of it beside bursts: two workloads of a run on the kit."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dasec.lab.kit.arms import settings_of
from dasec.lab.kit.bench import Bench, RunPlan
from dasec.lab.kit.controller import Managed
from dasec.lab.kit.driver import DRAIN_S, Place, Role, WorkDone, WorkKind, WorkOrder
from dasec.lab.kit.home import TenantHome
from dasec.lab.kit.layout import BESIDE, GroupLayout
from dasec.lab.kit.load_driver import ToolRun, requests, tool_command
from dasec.lab.kit.process import Child
from dasec.lab.kit.results import RunResult
from dasec.lab.kit.scenario import Scenario, Tenant
from dasec.lab.kit.tree import NEUTRAL, Tree
from dasec.lab.load_tool import PERCENTILES, Latencies, figure
from guests.memcached import VCPUS, Guest

from .fleet import MEMCACHED, Fleet, ask

if TYPE_CHECKING:
    from .wish import Wish

OUTSIDE, INSIDE = "outside", "inside"
"""Where the client is; the first part of what it measures is called."""

BURST_US = 10_000
KEYS = "50"


@dataclass(frozen=True, slots=True)
class Client:
    """What both drivers know."""

    fleet: Fleet
    name: str
    kind: WorkKind = WorkKind.SERVICE

    def missing(self) -> str | None:
        """The guests are up."""
        return None

    def vcpus(self, order: WorkOrder) -> int:  # noqa: ARG002  # the interface of drivers
        return VCPUS

    def critical(self, order: WorkOrder) -> tuple[str, ...]:  # noqa: ARG002  # the interface of drivers
        """From outside nobody sees which thread a vCPU runs."""
        return ()

    def guest(self, name: str) -> Guest:
        """That an instance of this name is about."""
        return self.fleet.guests[int(name.rpartition("-")[2])]


@dataclass(slots=True)
class Asking(ToolRun):
    """A client outside; the workload is QEMU."""

    qemu: int = 0

    def pids(self) -> tuple[int, ...]:
        return (self.qemu,)


@dataclass(frozen=True, slots=True)
class Outside(Client):
    """memcached's client, in the group of clients."""

    def start(self, order: WorkOrder, place: Place) -> Asking:
        order.folder.mkdir(parents=True)
        one = self.guest(order.name)
        asked = {"keys": KEYS, "port": str(one.ports[MEMCACHED]), "drain-seconds": f"{DRAIN_S:g}"}
        command = tool_command(order, "memcached", {**asked, **requests(order)})
        tool = Child.start(order.name, place, command, order.folder / "log", Role.CLIENT)
        return Asking(order, tool, is_foreign=True, qemu=self.fleet.pid(one))


@dataclass(slots=True)
class Commanded:
    """A guest whose shell is told to measure."""

    order: WorkOrder
    guest: Guest
    qemu: int
    pool: ThreadPoolExecutor
    _said: Future[Mapping[str, object]] | None = None

    def await_up(self) -> None:
        """It is."""

    def pids(self) -> tuple[int, ...]:
        return (self.qemu,)

    def begin(self, start_ns: int) -> None:  # noqa: ARG002  # the guest has a clock of its own
        """At once: it takes about as long as the time that is left until it asks anything."""
        self._said = self.pool.submit(ask, self.guest, script(self.order))

    def ensure_alive(self) -> None:
        """What it said when it failed is raised by `finish`."""

    def finish(self) -> WorkDone:
        assert self._said is not None, "has not begun"
        said = self._said.result()
        names = {key: int(figure(said, "latency_ns", key)) for key in PERCENTILES}
        count = int(figure(said, "latency_ns", "count"))
        return WorkDone(
            work=figure(said, "completed"),
            unit="requests",
            seconds=figure(said, "seconds_measured"),
            latencies=Latencies("", count, figure(said, "latency_ns", "mean"), names),
            unfinished=int(figure(said, "unfinished")),
            errors=int(figure(said, "errors")),
            late_sends=int(figure(said, "late_sends")),
        )

    def stop(self) -> None:
        self.pool.shutdown(wait=False)


@dataclass(frozen=True, slots=True)
class Inside(Client):
    """Background that outlasts the client, and the client, as processes of the guest."""

    def start(self, order: WorkOrder, place: Place) -> Commanded:  # noqa: ARG002  # the guest has its own
        one = self.guest(order.name)
        return Commanded(order, one, self.fleet.pid(one), ThreadPoolExecutor(1))


def script(order: WorkOrder) -> str:
    """What the guest's shell is told."""
    bursts_per_s = float(order.options["bursts"])
    return (
        f"dasec-load service --rate 1e-6 --helpers 0 --warmup 0 --seconds {order.total_s:g}"
        f" --background 2 --background-burst-us {BURST_US} --background-rate {bursts_per_s / 2:g}"
        f" --iterations-per-us {order.calibration!r} --seed {order.seed}"
        f" </dev/null >/dev/null 2>&1 &\n"
        f"dasec-load memcached --keys {KEYS} --rate {order.rate_per_s:g} --seconds {order.seconds:g}"
        f" --warmup {order.warmup_s:g} --seed {order.seed} --drain-seconds {DRAIN_S:g} 2>&1"
    )


@dataclass(slots=True)
class DomainHome(TenantHome):
    """Libvirt has made the groups, and has put the vCPUs there."""

    domain: str = ""

    def settle(self, pids: object) -> None:
        """They are where they belong."""

    def managed(self, pids: tuple[int, ...]) -> Managed:
        return Managed(self.domain, NEUTRAL, pids, libvirt=self.domain)


@contextlib.contextmanager
def homes(fleet: Fleet, plan: RunPlan, tree: Tree, arm: str) -> Iterator[tuple[TenantHome, ...]]:  # noqa: ARG001
    """Of ours only what is beside the guests has groups."""
    tree.make(BESIDE)
    yield tuple(
        DomainHome(tree, plan.layout, one, domain=fleet.guests[int(one.name.rpartition("-")[2])].name)
        for one in plan.scenario.tenants
    )


def bench_for(fleet: Fleet, wish: Wish, tree: Tree, directory: Path, calibration: float) -> Bench:
    """For runs with all guests of the fleet; each is two workloads, `inside-0` and `outside-0`."""
    options = (("bursts", f"{wish.bursts_per_s:g}"),)
    tenants = tuple(
        Tenant(f"{one.name}-{index}", one, VCPUS, wish.rate_per_s, options, is_exact=False)
        for index in range(len(fleet.guests))
        for one in (Inside(fleet, INSIDE), Outside(fleet, OUTSIDE))
    )
    plan = RunPlan(
        Scenario(wish.cores, tenants),
        GroupLayout.VM,
        wish.timing,
        wish.arms,
        wish.repetitions,
        wish.seed,
        {arm: settings_of(arm) for arm in wish.arms},
    )
    return Bench(
        plan,
        tree,
        directory,
        calibration,
        homes=partial(homes, fleet),
        inside=tuple(map(str, fleet.libvirtd.inside())),
    )


def seen_from(where: str, run: RunResult) -> RunResult:
    """The run with what the clients there measured."""
    return replace(run, tenants=tuple(one for one in run.tenants if one.name.startswith(where)))
