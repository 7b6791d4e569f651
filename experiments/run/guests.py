"""An experiment in guests, a block in each."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from dasec.errors import ExitStatus, Refusal
from dasec.lab.kit.arms import RIVAL, rival_of
from guests.built import HostCannotError

from ..places.counted.guests import host_of, measure
from ..places.counted.image import Inside
from ..places.counted.kernels import (
    KERNELS,
    WITH_SCHED_EXT,
    configuration_of,
    kernel_for,
    modules_for,
    release_of,
)
from ..places.counted.machine import Machine, Task, make_machine
from ..places.counted.programs import Programs
from ..plan.blocks import Block
from ..plan.order import Order, Planned
from ..plan.servers import Servers
from ..plan.terms import Place, PlacedCell
from ..plan.word import LONGEST
from ..results.store import Asked, Store
from .clock import minutes
from .host import keep

INSIDE = Inside("experiments.run.inside")

HOST_S_A_VIRTUAL_S = 1.0
"""Measured: 4.3 s of an idle core for 4.3 s of 1000 MIPS, half of it busy, with our own load tool."""

FOR_SERVERS = 2.0
"""So many times as long with other people's programs, whose instructions QEMU translates less well than a
loop: 0.6 (sixteen of Go), 1.7 (sixteen of RocksDB or PostgreSQL, 1600 s of a core) to 2.6 (memcached)."""

FOR_RUNTIMES = 6.0
"""With programs that translate themselves: Java half an hour, GluonCV 26 minutes of a core."""

RUNTIMES = ("java", "gluoncv")

RIVALS_HERE = "DASEC_RIVALS"

Blocks = Sequence[Block[PlacedCell]]


def measure_in_guests(
    experiment: Planned,
    missing: Blocks,
    store: Store[Planned],
    guests: int,
    machine: Machine,
) -> Asked[Planned]:
    """These blocks, each kept when it is done; what the folder belongs to."""
    known = store.belonging_to(store.asked(), experiment, host_for(machine, experiment))
    tasks = {task_for(experiment, block): block for block in missing}
    measure(machine, tasks, store, guests, partial(keep, experiment, store))
    return known


def expected(experiment: Planned, missing: int, guests: int) -> str:
    """How long so many blocks take, for people."""
    virtual_s = missing * len(experiment.arms) * experiment.run_s * experiment.machine.per_us / 1000
    host_s = virtual_s * HOST_S_A_VIRTUAL_S * _times_as_long(experiment)
    return f"about {minutes(host_s / min(guests, max(missing, 1)))} on idle cores"


def _times_as_long(experiment: Planned) -> float:
    if not isinstance(experiment, Servers):
        return 1.0
    runtimes = any(one.driver.startswith(RUNTIMES) for one in experiment.server)
    return FOR_RUNTIMES if runtimes else FOR_SERVERS


def machine_for(experiment: Planned, out: Path) -> Machine:
    """The guest; what is built for it lies in `out`. Raises HostCannotError, QemuMissingError."""
    cpus = experiment.machine
    isolated = experiment.kernel not in WITH_SCHED_EXT
    machine = make_machine(
        out / "guest",
        lambda: kernel_for(experiment.kernel, cpus),
        inside_of(experiment),
        cpus,
        isolated=isolated,
    )
    if isinstance(experiment, Servers):
        machine = replace(machine, memory_wanted_mib=experiment.memory_mib)
    return machine


def inside_of(experiment: Planned) -> Inside:
    """What runs in it. Raises HostCannotError."""
    programs: Programs | None = None
    modules: tuple[Path, ...] = ()
    if isinstance(experiment, Servers):
        programs = Programs.of(experiment.packages, experiment.applications)
        modules = modules_for(experiment.kernel, experiment.modules) if experiment.modules else ()
    rivals = rivals_of(experiment.arms)
    options = options_of(kernel_for(experiment.kernel, experiment.machine)) if rivals else None
    return replace(INSIDE, rivals=rivals, programs=programs, options=options, modules=modules)


def options_of(kernel: Path) -> tuple[str, Path] | None:
    """Its release and the file with its options, if that lies beside it."""
    found = configuration_of(kernel)
    return (release_of(kernel), found) if found else None


def rivals_of(arms: Iterable[str]) -> tuple[Path, ...]:
    """The programs of these arms, in the folder that the environment names. Raises HostCannotError."""
    names = [rival_of(arm)[0] for arm in arms if arm.startswith(RIVAL)]
    found = tuple(Path(os.environ.get(RIVALS_HERE, "")) / name for name in names)
    for program in found:
        if not program.is_file():
            raise HostCannotError(f"{program.name}: not found: {RIVALS_HERE} names the folder with it")
    return found


def host_for(machine: Machine, experiment: Planned) -> dict[str, object]:
    """What measures."""
    where = "in the testbed" if experiment.place is Place.TESTBED else "in an instruction-counted guest"
    return {**host_of(machine, inside_of(experiment)), "kernel": f"{KERNELS[experiment.kernel]} {where}"}


def task_for(experiment: Planned, block: Block[PlacedCell]) -> Task:
    """A block as a guest is told it. Refuses an experiment that says too much for a kernel's command line."""
    name = f"{block.cell.name}, repetition {block.repetition + 1}"
    word = Order.of(experiment, block).word
    if len(word) > LONGEST:
        raise Refusal(
            ExitStatus.USAGE,
            f"this experiment and {len(block.arms)} arms are {len(word)} characters for a guest, which can"
            f" have {LONGEST}: make two files of it",
        )
    return Task(name, word, len(block.arms))
