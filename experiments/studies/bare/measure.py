"""Guests beside each other in groups of ours, and runs of an arm with them."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from dasec.errors import ExitStatus, Refusal
from dasec.lab.kit.arms import CONTROL, NONE
from dasec.lab.kit.controller import Controller, Report, running
from dasec.lab.kit.counters import CpuTicks, CpuUse, cpu_ticks, cpu_time_s, thread_cpu_s
from dasec.lab.kit.driver import DRAIN_S
from dasec.lab.kit.errors import failure
from dasec.lab.kit.process import ensure_alive, start, wait_until
from dasec.lab.kit.results import RunResult, TenantResult
from dasec.lab.kit.scenario import seed_of
from dasec.lab.kit.tree import CLIENT, MACHINE, Tree
from dasec.lab.load_tool import latencies
from guests.bare import machine
from guests.bare.client import Client, Memcached
from guests.bare.domain import PREFIX, domain
from guests.bare.words import Accelerator
from guests.built import HostCannotError
from guests.libvirtd import Libvirtd

from ...places.libvirtd import own_libvirtd
from .load import ANSWERS, KEYS, ORDERS, Answers, Orders
from .situation import BACKGROUND_VCPU, HELPER_US, SERIAL_US, VCPUS, Situation
from .wish import Wish, groups, told

START_PATIENCE_S = 60.0
"""For the daemon's first period: it took 6 s at a load of 30."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Guests that are up, in their groups."""

    tree: Tree
    directory: Path
    situation: Situation
    guests: tuple[machine.Bare, ...]
    inside: tuple[str, ...] = ()
    """What a command begins with that shall see the guests' libvirtd."""

    @property
    def pids(self) -> tuple[int, ...]:
        """QEMU's processes."""
        return tuple(one.pid for one in self.guests)


@contextlib.contextmanager
def staged(tree: Tree, directory: Path, situation: Situation) -> Iterator[Stage]:
    """All guests, up and known to their networks; they and their groups are gone afterwards. Refusal where
    they do not come up."""
    tree.make(groups(situation.guests))
    with ExitStack() as stack:
        stack.callback(tree.sweep)
        with _refusing():
            stage = _raised(stack, tree, directory, situation)
            for one in stage.guests:
                _greet(one, situation)
        yield stage


@contextlib.contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except HostCannotError as cannot:
        raise Refusal(ExitStatus.HOST, str(cannot)) from cannot
    except (machine.NotUpError, OSError) as error:
        raise failure(f"a guest did not come up: {str(error).splitlines()[-1]}") from error


def _raised(stack: ExitStack, tree: Tree, directory: Path, situation: Situation) -> Stage:
    if not situation.libvirt:
        guests = tuple(_placed(stack, tree, situation) for _ in situation.guests.names)
        return Stage(tree, directory, situation, guests)
    daemon = stack.enter_context(_libvirtd(directory))
    inside = tuple(map(str, daemon.inside()))
    return Stage(tree, directory, situation, tuple(_domains(stack, daemon, situation)), inside)


def _greet(guest: machine.Bare, situation: Situation) -> None:
    """From now on QEMU's network knows where the guest is, and memcached has its keys."""
    with closing(Client(guest.address)) as client:
        client.statistics(0)
    if mix := situation.guests.memcached:
        with closing(Memcached(guest.memcached)) as memcached:
            for key in KEYS:
                memcached.set(key, bytes(mix.value_bytes))


def _placed(stack: ExitStack, tree: Tree, situation: Situation) -> machine.Bare:
    accelerator = Accelerator(situation.accelerator)
    guest = stack.enter_context(machine.running(accelerator, VCPUS, situation.guests.options))
    tree.place_process(guest.pid, MACHINE)
    return guest


@contextlib.contextmanager
def _libvirtd(directory: Path) -> Iterator[Libvirtd]:
    daemon = own_libvirtd(directory)
    try:
        yield daemon
    finally:
        try:
            daemon.destroy()
        finally:
            daemon.close()


def _domains(stack: ExitStack, daemon: Libvirtd, situation: Situation) -> list[machine.Bare]:
    import libvirt

    libvirt.registerErrorHandler(lambda context, error: None, None)  # else it prints what we say
    accelerator, options = Accelerator(situation.accelerator), situation.guests.options
    try:
        connection = stack.enter_context(closing(libvirt.open(daemon.uri)))
        return [
            stack.enter_context(domain(daemon, connection, accelerator, name, VCPUS, options))
            for name in situation.guests.names
        ]
    except libvirt.libvirtError as refused:
        raise failure(f"libvirt: {' '.join(str(refused).split())}") from refused


@contextlib.contextmanager
def controlled(stage: Stage, wish: Wish, arm: str, record: Path | None = None) -> Iterator[Controller | None]:
    """The daemon, once it has decided something, for the arms that have one."""
    if arm in (NONE, CONTROL):
        yield None
        return
    by_name = dict(zip(stage.situation.guests.names, stage.pids, strict=True))
    guests = f"{PREFIX}*" if stage.inside else by_name
    settings = told(arm, stage.situation.accelerator, guests, wish.emulator)
    with running(stage.tree, stage.directory, arm, settings, record, stage.inside) as controller:

        def decided() -> bool:
            controller.ensure_alive()
            return controller.report().decided.get("periods", 0) > 0

        wait_until(decided, f"dasec run, {arm}", START_PATIENCE_S)
        yield controller


@dataclass(frozen=True, slots=True)
class _Mark:
    """CPU counters at one instant."""

    at_ns: int
    ticks: CpuTicks
    guests_s: tuple[float, ...]
    background_s: tuple[float, ...]
    client_s: float
    daemon_s: float


def measure(stage: Stage, wish: Wish, arm: str, repetition: int) -> RunResult:
    """One run. Raises Refusal if the daemon or the client ended early."""
    with controlled(stage, wish, arm) as controller, _client(stage, wish, repetition) as client:
        time.sleep(wish.warmup_s)
        begin = _mark(stage, client.pid, controller)
        time.sleep(wish.seconds)
        end = _mark(stage, client.pid, controller)
        report = controller.report() if controller else Report()
        answers = client.answers()
    seconds = (end.at_ns - begin.at_ns) / 1e9
    machine_use = CpuUse.between(begin.ticks, end.ticks)
    tenants = tuple(
        _tenant(name, number, answers[number], begin, end)
        for number, name in enumerate(stage.situation.guests.names)
    )
    client_s, daemon_s = end.client_s - begin.client_s, end.daemon_s - begin.daemon_s
    ours = sum(one.cores for one in tenants) + (client_s + daemon_s) / seconds
    return RunResult(
        arm=arm,
        repetition=repetition,
        tenants=tenants,
        client_cpu_s=client_s,
        daemon_cpu_s=daemon_s,
        busy=machine_use.busy,
        other_cores=machine_use.other_cores(len(os.sched_getaffinity(0)), ours),
        steal=machine_use.stolen,
        seconds=seconds,
        decided=report.decided,
        troubles=report.troubles,
    )


@dataclass(frozen=True, slots=True)
class _Running:
    """The client's process."""

    pid: int
    answers: Callable[[], list[Answers]]


@contextlib.contextmanager
def _client(stage: Stage, wish: Wish, repetition: int) -> Iterator[_Running]:
    mix = stage.situation.guests.memcached
    orders = Orders(
        ports=tuple((one.memcached if mix else one.address)[1] for one in stage.guests),
        seeds=tuple(seed_of(wish.seed, repetition, index) for index in range(len(stage.guests))),
        rate_per_s=stage.situation.guests.rate_per_s,
        serial_us=SERIAL_US,
        helper_us=HELPER_US,
        warmup_s=wish.warmup_s,
        seconds=wish.seconds,
        memcached=mix,
    )
    out, log = stage.directory / "answers.json", stage.directory / "client.log"
    told = ORDERS.dump_json(orders).decode()
    command = [sys.executable, "-m", "experiments.studies.bare.load", told, str(out)]
    process = start(stage.tree, CLIENT, command, log)

    def answers() -> list[Answers]:
        process.wait(wish.warmup_s + wish.seconds + DRAIN_S + START_PATIENCE_S)
        ensure_alive(process, "client", log, end_s=0.0)
        return ANSWERS.validate_json(out.read_bytes())

    try:
        yield _Running(process.pid, answers)
    finally:
        process.kill()
        process.wait()


def drive(stage: Stage, wish: Wish) -> list[Answers]:
    """The load without anything measured around it."""
    with _client(stage, wish, repetition=0) as client:
        return client.answers()


def _mark(stage: Stage, client: int, controller: Controller | None) -> _Mark:
    threads = [(one.pid, one.vcpu_threads()[BACKGROUND_VCPU]) for one in stage.guests]
    return _Mark(
        time.monotonic_ns(),
        cpu_ticks(),
        tuple(cpu_time_s([pid]) for pid in stage.pids),
        tuple(thread_cpu_s(pid, tid) for pid, tid in threads),
        cpu_time_s([client]),
        cpu_time_s([controller.process.pid]) if controller else 0.0,
    )


def _tenant(name: str, number: int, answers: Answers, begin: _Mark, end: _Mark) -> TenantResult:
    seconds = (end.at_ns - begin.at_ns) / 1e9
    background_s = end.background_s[number] - begin.background_s[number]
    found = latencies(answers.latencies_ns)
    return TenantResult(
        name=name,
        latencies=found,
        throughput_per_s=(found.count - answers.unfinished) / seconds,
        unfinished=answers.unfinished,
        errors=0,
        late_sends=answers.late_sends,
        cores=(end.guests_s[number] - begin.guests_s[number]) / seconds,
        background_cores=background_s / seconds,
    )
