"""Blocks in instruction-counted guests of Debian's kernel (EEVDF), several at a time."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from pathlib import Path

import click
from pydantic import TypeAdapter

from dasec.errors import ExitStatus, Refusal
from dasec.lab.kit.results import RunResult
from guests.built import HostCannotError
from guests.qemu import QemuMissingError, major_version
from guests.throw_away import debian_kernel, missing_tools

from ...plan.blocks import Block, Named
from ...plan.word import told_in
from ...results.store import Done, Store, WishT
from ...run.options import giving
from .batch import measure_all
from .cpus import Cpus
from .image import Inside, build_id
from .machine import Machine, Task, Told, make_machine

KERNEL = "linux-image-6.12-amd64"

_RUNS = TypeAdapter(tuple[RunResult, ...])

_OPTIONS = (
    click.option(
        "--cores", type=click.IntRange(1, 8), default=2, help="For the services; one more measures."
    ),
    click.option(
        "--guests", type=click.IntRange(min=1), default=2, help="At a time, a core of the host each."
    ),
    click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True),
    click.option("--dry-run", is_flag=True, help="Say what would be run."),
)


guesting = giving(_OPTIONS)
"""Gives a command the options of guests."""


def machine_for(experiment: str, scratch: Path, inside: Inside, cores: int) -> Machine:
    """Everything that the guests need. Refuses where the host has no way to get it."""
    lacking = missing_tools()
    if lacking:
        raise Refusal(
            ExitStatus.HOST, f"{experiment}: {', '.join(lacking)}: not found: `DASEC_CI=1 tools/setup`"
        )
    try:
        return make_machine(scratch, lambda: debian_kernel(KERNEL).image, inside, Cpus(cores))
    except (HostCannotError, QemuMissingError) as error:
        raise Refusal(ExitStatus.HOST, f"{experiment}: {error}") from None


def host_of(machine: Machine, inside: Inside) -> dict[str, object]:
    """What measures: another daemon, load tool, kernel or emulator is another host."""
    return {
        "kernel": f"{machine.kernel.name.removeprefix('vmlinuz-')} in an instruction-counted guest",
        "qemu_major": major_version(machine.qemu),
        "mips_each": machine.cpus.mips_each,
        "python": platform.python_version(),
        "build": build_id(inside),
    }


def measure(
    machine: Machine,
    block_of: Mapping[Task, Block[Named]],
    store: Store[WishT],
    guests: int,
    check: Callable[[Block[Named], Done], None],
) -> None:
    """All of these blocks, each kept when done and then checked. Refuses with what failed, at the end."""

    def kept(task: Task, told: Told) -> None:
        keep_block(block_of[task], told, store, check)

    failures = measure_all(machine, tuple(block_of), guests, kept)
    if failures:
        raise Refusal(ExitStatus.FAILED, *(f"{store.experiment}: {line}" for line in failures))


def keep_block(
    block: Block[Named], told: Told, store: Store[WishT], check: Callable[[Block[Named], Done], None]
) -> None:
    """What a guest said of this block, in the store; then checked."""
    if told.records:
        folder = store.records(block)
        for name, word in told.records.items():
            (folder / name).write_bytes(told_in(word))
    check(block, store.add(block, _RUNS.validate_python(told.runs)))
