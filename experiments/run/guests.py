"""An experiment in guests, a block in each; what is finished is kept."""

from __future__ import annotations

import tomllib
from pathlib import Path

import click
from pydantic import TypeAdapter, ValidationError

from dasec.bpf.libbpf import LIBRARY
from dasec.config.complaints import follows, path_of, reason_of
from dasec.errors import ExitStatus, Refusal

from ..places.counted.guests import host_of, measure
from ..places.counted.image import Inside
from ..places.counted.kernels import KERNELS, SCHED_EXT, TESTBED, kernel_for, or_refuse
from ..places.counted.machine import Machine, Task, make_machine
from ..plan.blocks import Block, blocks_of
from ..plan.cells import Cell
from ..plan.experiment import Experiment
from ..plan.order import Order
from ..plan.word import LONGEST
from ..results.store import Store
from ..studies.loads.publish import publish_cells
from ..studies.loads.runner import check_arrivals
from ..studies.testbed.waiting import publish_waiting
from .clock import minutes

HERE = Path(__file__).resolve().parent
PLANNED = ("arms", "cells", "experiment", "loads", "order", "shapes", "variants")
PLAN = tuple(HERE.parent / "plan" / f"{name}.py" for name in PLANNED)
INSIDE = Inside(HERE, "inside", (), (LIBRARY,), (*PLAN, HERE.parent / "places/counted/speed.py"))

HOST_S_A_VIRTUAL_S = 1.0
"""Measured: 4.3 s of an idle core for 4.3 s of 1000 MIPS, half of it busy."""

_EXPERIMENT = TypeAdapter(Experiment)


def read(file: Path, cpus: int, kernel: str) -> Experiment:
    """The file's experiment on this machine. Refuses with all that is wrong, a line each."""
    try:
        told = tomllib.loads(file.read_text(encoding="utf-8"))
        return _EXPERIMENT.validate_python({**told, "cpus": cpus, "kernel": kernel})
    except OSError as error:
        lines = [f"{error.strerror}: give an experiment's TOML file"]
    except UnicodeDecodeError:
        lines = ["not UTF-8: save it as such"]
    except tomllib.TOMLDecodeError as error:
        lines = [f"{error}: not TOML"]
    except ValidationError as error:
        wrong = error.errors()
        told_of = ((path_of(one["loc"]), reason_of(one)) for one in wrong if not follows(one, wrong))
        lines = [": ".join(filter(None, parts)) for parts in told_of]
    raise Refusal(ExitStatus.USAGE, *(f"{TESTBED}: {file}: {line}" for line in lines))


def run(experiment: Experiment, guests: int, out: Path, *, dry_run: bool = False) -> None:
    """All blocks that are not there yet, then the report."""
    store = Store(out, Experiment, TESTBED)
    known = store.asked()
    if known:
        store.check_options(known, experiment)
    cells, wish, cpus = experiment.cells, experiment.wish, experiment.machine
    blocks = tuple(blocks_of(cells.possible, wish.arms, wish.repetitions, wish.seed))
    finished = {one.key for one in store.done()}
    missing = {task_for(experiment, block): block for block in blocks if block.key not in finished}
    virtual_s = len(missing) * len(wish.arms) * wish.run_s * cpus.per_us / 1000
    click.echo(
        f"{len(blocks)} guests of {cpus.services} CPUs, {len(blocks) - len(missing)} of them done before;"
        f" {len(wish.arms)} runs in each ({', '.join(wish.arms)});"
        f" about {minutes(virtual_s * HOST_S_A_VIRTUAL_S / guests)} on idle cores; seed {wish.seed}"
    )
    if dry_run:
        return
    machine = or_refuse(lambda: machine_for(experiment, out))
    known = store.belonging_to(known, experiment, host_for(machine, experiment))
    measure(machine, missing, store, guests, check_arrivals)
    publish_cells(store, wish, cells, known.host)
    publish_waiting(experiment, out)


def machine_for(experiment: Experiment, out: Path) -> Machine:
    """The guest; what is built for it lies in `out`. Raises HostCannotError, QemuMissingError."""
    cpus = experiment.machine
    isolated = experiment.kernel != SCHED_EXT
    return make_machine(
        out / "guest", lambda: kernel_for(experiment.kernel, cpus), INSIDE, cpus, isolated=isolated
    )


def host_for(machine: Machine, experiment: Experiment) -> dict[str, object]:
    """What measures."""
    return {**host_of(machine, INSIDE), "kernel": f"{KERNELS[experiment.kernel]} in the testbed"}


def task_for(experiment: Experiment, block: Block[Cell]) -> Task:
    """A block as a guest is told it. Refuses an experiment that says too much for a kernel's command line."""
    name = f"{block.cell.name}, repetition {block.repetition + 1}"
    word = Order(experiment, block.cell.name, block.repetition, block.arms).word
    if len(word) > LONGEST:
        raise Refusal(
            ExitStatus.USAGE,
            f"{TESTBED}: {len(experiment.workload)} workloads and {len(block.arms)} arms are {len(word)}"
            f" characters for a guest, which can have {LONGEST}: make two files of it",
        )
    return Task(name, word, len(block.arms))
