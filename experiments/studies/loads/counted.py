"""The suite in deterministic guests of Debian's kernel (EEVDF).

    python -m experiments.studies.loads.counted --out DIR

From the repository's top folder; needs no root. README.md says more. A guest for each block, several at a
time; what is finished is kept, and the same command goes on after an interruption.
"""

from __future__ import annotations

from pathlib import Path

import click

from dasec.bpf.libbpf import LIBRARY
from dasec.errors import ExitStatus, Refusal

from ...places.counted.guests import guesting, host_of, machine_for, measure
from ...places.counted.image import Inside
from ...places.counted.machine import Task
from ...plan.blocks import Block, blocks_of
from ...plan.cells import Cell, Wish, cells_of
from ...results.store import Store
from ...run.entry import enter
from .choice import choosing, wish_for
from .order import Order
from .publish import publish
from .runner import EXPERIMENT, check_arrivals

HERE = Path(__file__).resolve().parent
PLAN = tuple(HERE.parents[1] / "plan" / f"{name}.py" for name in ("cells", "loads", "shapes", "variants"))
INSIDE = Inside(HERE, "inside", ("order",), (LIBRARY,), PLAN)
NOT_INSIDE = "memcached"
DEFAULTS = {
    "loads": "background,external,convoy,fanout,idle",
    "ratios": "4",
    "utilisations": "0.8",
    "policies": "critical,oracle",
    "repetitions": 4,
    "lead": 8.0,
    "seed": 1,
    "blame": False,
}
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
@click.option("--records", is_flag=True, help="Keep the daemon's record of every run.")
@guesting
def command(
    records: bool,  # noqa: FBT001
    cores: int,
    guests: int,
    out: Path,
    dry_run: bool,  # noqa: FBT001
    **options: object,
) -> None:
    """The suite of loads in instruction-counted guests: independent of what else the host does."""
    store = Store(out, Wish, EXPERIMENT)
    wish = wish_for(options, cores, store, records=records)
    if NOT_INSIDE in wish.loads:
        raise Refusal(ExitStatus.USAGE, f"loads: --loads: {NOT_INSIDE}: is not in the guest: leave it out")
    cells = cells_of(wish)
    blocks = tuple(blocks_of(cells.possible, wish.arms, wish.repetitions, wish.seed))
    finished = {one.key for one in store.done()}
    missing = [block for block in blocks if block.key not in finished]
    click.echo(
        f"{len(blocks)} guests, {len(finished)} of them done before; {len(wish.arms)} runs in each"
        f" ({', '.join(wish.arms)}); seed {wish.seed}"
    )
    for line in cells.impossible:
        click.echo(f"does not exist: {line}")
    if dry_run:
        return
    machine = machine_for(EXPERIMENT, out / "guest", INSIDE, cores)
    known = store.belonging_to(store.asked(), wish, host_of(machine, INSIDE))
    measure(machine, {task_for(wish, block): block for block in missing}, store, guests, check_arrivals)
    publish(store, known)


def task_for(wish: Wish, block: Block[Cell]) -> Task:
    """A block as a guest is told it."""
    return Task(
        f"{block.cell.name}, repetition {block.repetition + 1}", Order.of(wish, block).word, len(block.arms)
    )


if __name__ == "__main__":
    enter(command, "python -m experiments.studies.loads.counted")
