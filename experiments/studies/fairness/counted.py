"""The contests in deterministic guests of Debian's kernel.

    python -m experiments.studies.fairness.counted --out DIR

From the repository's top folder; needs no root. README.md says more. A guest for each block, several at a
time; what is finished is kept, and the same command goes on after an interruption.
"""

from __future__ import annotations

from pathlib import Path

import click

from dasec.bpf.libbpf import LIBRARY

from ...places.counted.guests import guesting, host_of, machine_for, measure
from ...places.counted.image import Inside
from ...places.counted.machine import Task
from ...plan.blocks import Block, Named, blocks_of
from ...results.store import Done, Store
from ...run.entry import enter
from .choice import EXPERIMENT, choosing, wish_for
from .publish import publish
from .wish import ARMS, Cell, Order, Wish

INSIDE = Inside(Path(__file__).resolve().parent, "inside", ("scenarios", "wish"), (LIBRARY,))
DEFAULTS = {"repetitions": 4, "seconds": 8.0, "warmup": 1.5, "lead": 8.0, "seed": 1}
"""A service needs a second of a 333 MIPS core to be there, and the daemon has to look before the load
begins."""


@click.command(
    context_settings={
        "help_option_names": ["-h", "--help"],
        "show_default": True,
        "default_map": DEFAULTS,
    }
)
@choosing
@click.option("--pinned", is_flag=True, help="Each thread keeps to one core: weights, not placement.")
@guesting
def command(
    pinned: bool,  # noqa: FBT001
    cores: int,
    guests: int,
    out: Path,
    dry_run: bool,  # noqa: FBT001
    **options: object,
) -> None:
    """What each of two workloads gets under `critical` in instruction-counted guests."""
    store = Store(out, Wish, EXPERIMENT)
    wish = wish_for(options, cores, store, pinned=pinned)
    blocks = tuple(blocks_of(wish.cells, ARMS, wish.repetitions, wish.seed))
    finished = {one.key for one in store.done()}
    missing = [block for block in blocks if block.key not in finished]
    click.echo(f"{len(blocks)} guests, {len(finished)} of them done before; {len(ARMS)} runs in each")
    if dry_run:
        return
    machine = machine_for(EXPERIMENT, out / "guest", INSIDE, cores)
    known = store.belonging_to(store.asked(), wish, host_of(machine, INSIDE))
    measure(machine, {task_for(wish, block): block for block in missing}, store, guests, _unchecked)
    publish(store, known)


def task_for(wish: Wish, block: Block[Cell]) -> Task:
    """A block as a guest is told it."""
    name = f"{block.cell.name}, repetition {block.repetition + 1}"
    return Task(name, Order(wish, block).word, len(block.arms))


def _unchecked(_block: Block[Named], _done: Done) -> None:
    """On saturated cores how much was answered is a result."""


if __name__ == "__main__":
    enter(command, "python -m experiments.studies.fairness.counted")
