"""Experiments that are made of plans, on this host or in guests: what there is to do, done, and reported."""

from __future__ import annotations

import os
import shutil
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from dasec.config.config import ConfigError
from dasec.config.config import check as check_settings
from dasec.errors import ExitStatus, Refusal
from dasec.lab.kit import facts, needs
from dasec.lab.kit.arms import has_daemon, told_under
from dasec.lab.kit.controller import Managed, configuration
from dasec.lab.kit.tree import NEUTRAL
from guests.built import HostCannotError
from guests.throw_away import missing_tools

from ..places.counted.installed import Installed
from ..places.counted.kernels import KERNELS, PATCHED, WITHOUT_MODULES, or_refuse
from ..places.counted.machine import TOOLS
from ..places.ground import keeping, leaving_as_before, this_host
from ..plan.blocks import Block, blocks_of
from ..plan.cells import Suite
from ..plan.contests import Contests
from ..plan.file import Told, refusal, validated
from ..plan.hosts import Hosts
from ..plan.order import Planned
from ..plan.servers import Servers
from ..plan.terms import Place, PlacedCell
from ..plan.testbed import Shapes
from ..results.compare import Side
from ..results.contests.publish import publish_contests
from ..results.publish import publish_cells
from ..results.rows import rows_of
from ..results.store import Asked, Store
from ..results.waiting import publish_waiting
from .clock import minutes
from .family import Ways, lacking
from .guests import expected, machine_for, measure_in_guests, task_for
from .host import measure_here

Kind = type[Shapes] | type[Suite] | type[Contests] | type[Servers] | type[Hosts]

KINDS: Mapping[str, Kind] = {
    "server": Servers,
    "workload": Shapes,
    "loads": Suite,
    "contests": Contests,
    "host": Hosts,
}
"""By the key that only such a file has."""


KEYS = tuple(KINDS)


def kind_of(told: Told) -> Kind | None:
    """Which of them a file is; None: none."""
    return next((kind for key, kind in KINDS.items() if key in told), None)


def experiment_in(told: Told, file: Path) -> Planned:
    """Checked whole. Refuses with all that is wrong, a line each."""
    kind = kind_of(told)
    assert kind is not None
    found: Planned = validated(kind, told, file)
    if found.place is Place.HOST and not found.cpus:
        found = replace(found, cpus=len(os.sched_getaffinity(0)))
    lines = list(_wrong(found))
    if lines:
        raise refusal(file, lines)
    for block in blocks(found)[:1]:
        if found.place is not Place.HOST:
            task_for(found, block)
    return found


def _wrong(experiment: Planned) -> Iterator[str]:
    """What a guest, or the daemon, would refuse."""
    if experiment.place is not Place.HOST and experiment.kernel not in KERNELS:
        yield f"kernel: {experiment.kernel} is unknown: known are {', '.join(KERNELS)}"
    if isinstance(experiment, Servers) and experiment.modules and experiment.kernel in WITHOUT_MODULES:
        with_them = ", ".join(name for name in KERNELS if name not in WITHOUT_MODULES)
        yield f"kernel: {experiment.kernel} has no module {experiment.modules[0]}: take one of {with_them}"
    if isinstance(experiment, Contests) and experiment.pinned and experiment.place is Place.HOST:
        yield "pinned: is of guests: leave it out"
    for block in blocks(experiment)[:1]:
        yield from _refused(block.arms, experiment.plan(block).settings)


def _refused(arms: Iterable[str], settings: Mapping[str, str]) -> Iterator[str]:
    """Arms under which the daemon would refuse what it is told, with what is wrong."""
    for arm in filter(has_daemon, arms):
        told = configuration(arm, [Managed("any", NEUTRAL, (1,))], told_under(arm, settings, 1))
        try:
            check_settings(tomllib.loads(told), "")
        except ConfigError as error:
            yield from (f"policies: {arm}: {line.removeprefix(': ')}" for line in error.lines)
        except tomllib.TOMLDecodeError:
            yield f"policies: {arm}: not TOML: give a constant and a value"


def blocks(experiment: Planned) -> tuple[Block[PlacedCell], ...]:
    """All of them, in their order."""
    cells = experiment.cells.possible
    return tuple(blocks_of(cells, experiment.arms, experiment.repetitions, experiment.seed))


def store_in(folder: Path, kind: Kind) -> Store[Planned]:
    """The folder as a place for blocks of such an experiment."""
    return Store(folder, kind)


def missing_here(experiment: Planned) -> Iterator[str]:
    """What this machine lacks to run it."""
    if experiment.place is Place.HOST:
        tenants = (one for cell in experiment.cells.possible for one in cell.scenario.tenants)
        check_drivers = partial(needs.check_drivers, (one.driver for one in tenants))
        yield from lacking(needs.check_root, needs.check_libraries, check_drivers, needs.find_tree)
        return
    tools = [tool for tool in TOOLS if shutil.which(tool) is None]
    if experiment.kernel != PATCHED:
        tools += missing_tools()
    yield from (f"{tool}: not found: `DASEC_CI=1 tools/setup`" for tool in dict.fromkeys(tools))
    if isinstance(experiment, Servers):
        try:
            Installed.of(experiment.applications)
        except HostCannotError as error:
            yield str(error)


def announce(experiment: Planned, store: Store[Planned] | None, guests: int) -> Sequence[Block[PlacedCell]]:
    """Says what there is to do; the blocks that are not there yet."""
    every, cells = blocks(experiment), experiment.cells
    finished = {one.key for one in store.done()} if store else set()
    missing = [block for block in every if block.key not in finished]
    if not every:
        raise Refusal(ExitStatus.USAGE, *(f"does not exist: {line}" for line in cells.impossible))
    runs, arms = len(missing) * len(experiment.arms), ", ".join(experiment.arms)
    if experiment.place is Place.HOST:
        what = f"{len(cells.possible)} cells, {experiment.repetitions} repetitions, arms {arms}"
        time = f"{runs} runs of {experiment.timing.total_s:g} s, about {minutes(runs * experiment.run_s)}"
    else:
        what = f"{len(every)} guests of {experiment.cpus} CPUs; {len(experiment.arms)} runs in each ({arms})"
        time = expected(experiment, len(missing), guests)
    click.echo(f"{what}: {time}; seed {experiment.seed}")
    if finished:
        click.echo(f"{len(every) - len(missing)} of {len(every)} blocks are there already")
    for line in cells.impossible:
        click.echo(f"does not exist: {line}")
    return missing


def check(told: Told, file: Path, ways: Ways) -> tuple[str, ...]:
    """Says what would be run; what is missing here."""
    experiment = experiment_in(told, file)
    announce(experiment, None, ways.guests)
    return tuple(missing_here(experiment))


def run(told: Told, file: Path, out: Path, ways: Ways) -> None:
    """All blocks that are not there yet, then the report."""
    experiment = experiment_in(told, file)
    store = store_in(out, type(experiment))
    known = store.asked_for(experiment)
    missing = announce(experiment, store, ways.guests)
    if experiment.place is Place.HOST:
        needs.check_root()
        needs.check_libraries()
        known = store.belonging_to(known, experiment, this_host(known, out))
        for line in facts.warnings(experiment.cpus):
            click.echo(f"warning: {line}")
        if missing:
            leaving_as_before(out, lambda: measure_here(experiment, missing, store, click.echo))
    else:
        known = keeping(out, lambda: _in_guests(experiment, missing, store, ways.guests))
    publish(store, known)


def _in_guests(
    experiment: Planned, missing: Sequence[Block[PlacedCell]], store: Store[Planned], guests: int
) -> Asked[Planned]:
    machine = or_refuse(lambda: machine_for(experiment, store.folder))
    return measure_in_guests(experiment, missing, store, guests, machine)


def publish(store: Store[Planned], known: Asked[Planned]) -> None:
    """Tables and pictures beside the raw runs."""
    experiment = known.wish
    if isinstance(experiment, Contests):
        publish_contests(store, experiment, known.host)
        return
    publish_cells(store, experiment, known.host)
    if isinstance(experiment, Shapes):
        publish_waiting(experiment, store.folder)


def report(told: Told, folder: Path) -> None:
    """What is kept in this folder, which was asked for that."""
    publish(*_kept(told, folder))


def side(told: Told, folder: Path) -> Side:
    """To be compared."""
    store, known = _kept(told, folder)
    rows = tuple(rows_of(known.wish.cells.possible, store.done(), known.wish.arms))
    return Side(folder, known.wish.title, store.plain(known.wish), known.host, rows)


def _kept(told: Told, folder: Path) -> tuple[Store[Planned], Asked[Planned]]:
    kind = kind_of(told)
    store = store_in(folder, kind) if kind else None
    known = store.asked() if store else None
    if store is None or known is None:
        raise Refusal(ExitStatus.USAGE, f"{folder}: of an experiment that this version does not know")
    return store, known
