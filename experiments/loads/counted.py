"""The suite in deterministic guests of Debian's kernel (EEVDF): python -m experiments.loads.counted --out DIR

From the repository's top folder; needs no root. README.md says more. A guest for each block, several at a
time; what is finished is kept, and the same command goes on after an interruption.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path

import click
from pydantic import TypeAdapter

from dasec.demo.results import RunResult
from dasec.exits import ExitStatus, Refusal
from dasec.linux.bpf import LIBRARY
from tests.vm.built import HostCannotError
from tests.vm.guest import debian_kernel, missing_tools
from tests.vm.qemu import QemuMissingError, major_version

from ..counted.batch import measure_all
from ..counted.cpus import Cpus
from ..counted.image import Inside, build_id
from ..counted.machine import Machine, Run, Task, make_machine
from .cells import Block, Wish, blocks_of, cells_of
from .choice import choosing, wish_for
from .entry import enter
from .order import Order
from .publish import publish
from .runner import check_arrivals
from .store import Asked, Store

KERNEL = "linux-image-6.12-amd64"
INSIDE = Inside(
    Path(__file__).resolve().parent,
    "inside",
    ("catalogue", "cells", "order", "shapes", "variants"),
    (LIBRARY,),
)
NOT_INSIDE = "memcached"
DEFAULTS = {
    "loads": "background,external,convoy,fanout,idle",
    "ratios": "4",
    "utilisations": "0.8",
    "policies": "critical,oracle",
    "repetitions": 4,
    "lead": 4.0,
    "seed": 1,
    "blame": False,
}
"""The daemon, and each service, needs a second of a 333 MIPS core to be there."""

_RUNS = TypeAdapter(tuple[RunResult, ...])


@click.command(
    context_settings={
        "help_option_names": ["-h", "--help"],
        "show_default": True,
        "default_map": DEFAULTS,
    }
)
@choosing
@click.option("--cores", type=click.IntRange(1, 8), default=2, help="For the services; one more measures.")
@click.option("--guests", type=click.IntRange(min=1), default=2, help="At a time, a core of the host each.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True)
@click.option("--dry-run", is_flag=True, help="Say what would be run.")
def command(cores: int, guests: int, out: Path, dry_run: bool, **options: object) -> None:  # noqa: FBT001
    """The suite of loads in instruction-counted guests: independent of what else the host does."""
    store = Store(out)
    known = store.asked()
    wish = wish_for(options, cores, known)
    if NOT_INSIDE in wish.loads:
        raise Refusal(ExitStatus.USAGE, f"loads: --loads: {NOT_INSIDE}: is not in the guest: leave it out")
    cells = cells_of(wish)
    blocks = tuple(blocks_of(wish, cells.possible))
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
    machine = _machine(out / "guest", Cpus(cores))
    known = _same_machine(known, wish, machine, store)
    failures = _measure(machine, wish, missing, store, guests)
    if failures:
        raise Refusal(ExitStatus.FAILED, *(f"loads: {line}" for line in failures))
    publish(store, known)


def _machine(scratch: Path, cpus: Cpus) -> Machine:
    """Everything that the guests need. Refuses where the host has no way to get it."""
    lacking = missing_tools()
    if lacking:
        raise Refusal(ExitStatus.HOST, f"loads: {', '.join(lacking)}: not found: `DASEC_CI=1 tools/setup`")
    try:
        return make_machine(scratch, lambda: debian_kernel(KERNEL).image, INSIDE, cpus)
    except (HostCannotError, QemuMissingError) as error:
        raise Refusal(ExitStatus.HOST, f"loads: {error}") from None


def _same_machine(known: Asked | None, wish: Wish, machine: Machine, store: Store) -> Asked:
    """Refuses to go on with what another daemon, load tool, kernel or emulator has measured."""
    host: dict[str, object] = {
        "kernel": f"{machine.kernel.name.removeprefix('vmlinuz-')} in an instruction-counted guest",
        "qemu_major": major_version(machine.qemu),
        "mips_each": machine.cpus.mips_each,
        "python": platform.python_version(),
        "build": build_id(INSIDE),
    }
    if known is None:
        known = Asked(wish, host)
        store.begin(known)
    elif known.host != host:
        raise Refusal(
            ExitStatus.USAGE, f"loads: --out: {store.folder}: of another build: name another folder"
        )
    return known


def _measure(
    machine: Machine, wish: Wish, blocks: Sequence[Block], store: Store, guests: int
) -> Sequence[str]:
    """All of these blocks; what failed, in a line each."""
    block_of = {task_for(wish, block): block for block in blocks}

    def keep(task: Task, runs: list[Run]) -> None:
        done = store.add(block_of[task], _RUNS.validate_python(runs))
        check_arrivals(block_of[task], done.runs)

    return measure_all(machine, tuple(block_of), guests, keep)


def task_for(wish: Wish, block: Block) -> Task:
    """A block as a guest is told it."""
    return Task(
        f"{block.cell.name}, repetition {block.repetition + 1}", Order.of(wish, block).word, len(block.arms)
    )


if __name__ == "__main__":
    enter(command, "python -m experiments.loads.counted")
