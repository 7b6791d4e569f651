"""Blocks in instruction-counted guests, several at a time."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence

from pydantic import TypeAdapter

from dasec.errors import ExitStatus, Refusal
from dasec.lab.kit.results import RunResult
from guests.qemu import major_version

from ...plan.blocks import Block, Named
from ...plan.word import told_in
from ...results.store import Store, WishT
from .batch import measure_all
from .image import Inside, build_id
from .machine import Machine, Task, Told

_RUNS = TypeAdapter(tuple[RunResult, ...])

Keep = Callable[[Block[Named], Sequence[RunResult]], str | None]
"""Keeps the runs of a block; or says what is wrong with them."""


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
    keep: Keep,
) -> None:
    """All of these blocks, each kept when done. Refuses with what failed, at the end."""
    wrong: list[str] = []

    def kept(task: Task, told: Told) -> None:
        if why := keep_block(block_of[task], told, store, keep):
            wrong.append(why)

    failures = measure_all(machine, tuple(block_of), guests, kept)
    if failures or wrong:
        raise Refusal(ExitStatus.FAILED, *failures, *wrong)


def keep_block(block: Block[Named], told: Told, store: Store[WishT], keep: Keep) -> str | None:
    """What a guest said of this block, in the store; or what is wrong with it."""
    if told.records:
        folder = store.records(block)
        for name, word in told.records.items():
            (folder / name).write_bytes(told_in(word))
    return keep(block, _RUNS.validate_python(told.runs))
