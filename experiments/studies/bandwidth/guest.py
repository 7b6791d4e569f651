"""The guests of the figures: one static program is all that runs in them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from experiments.places.counted.cpus import Cpus
from experiments.places.counted.machine import Machine, Run, Task, build_turns, measure
from guests.boot import pack
from guests.built import next_image, patched_image
from guests.qemu import counting_qemu
from guests.throw_away import debian_kernel

from .figures import Figure
from .figures import Run as Wanted

INSIDE = Path(__file__).resolve().parent / "inside"

SERIES = ("6.1", "6.12")
KERNELS: dict[str, Callable[[], Path]] = {
    "6.1": lambda: patched_image("--bandwidth"),
    "6.12": next_image,
    "6.1-debian": lambda: debian_kernel("linux-image-amd64").image,
    "6.12-debian": lambda: debian_kernel("linux-image-6.12-amd64").image,
}
"""The first two have the series; with all its switches off they are as those without."""

WORD_CHARACTERS = 1500
"""The kernel takes command lines of 2048: so long may the runs of one guest be."""


def machine_of(kernel: str, cpus: int, scratch: Path) -> Machine:
    """A guest with so many CPUs, and one that measures. Raises HostCannotError, QemuMissingError."""
    scratch.mkdir(parents=True, exist_ok=True)
    tree = scratch / "root"
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir()
    make = ["make", "-s", "-C", str(INSIDE), f"BUILD={scratch.resolve() / 'inside'}"]
    subprocess.run(make, check=True)
    shutil.copy(scratch / "inside/init", tree / "init")
    seats = Cpus(cpus)
    turns = build_turns(scratch, seats)
    return Machine(counting_qemu(), KERNELS[kernel](), pack(tree), turns, seats, isolated=False)


def said_of(
    machine: Machine, figure: Figure, wanted: list[Wanted], told: Callable[[Wanted, Run], None]
) -> None:
    """Boots one guest after the other until all runs are done. Raises GuestFailedError."""
    for batch in batches([one.word for one in wanted]):
        ours, wanted = wanted[: len(batch)], wanted[len(batch) :]
        task = Task(figure.name, ",".join(batch), len(batch))
        for run, said in zip(ours, measure(machine, task, lambda: None).runs, strict=True):
            told(run, said)


def batches(words: list[str]) -> list[list[str]]:
    """As many runs for each guest as its command line holds.

    >>> [len(batch) for batch in batches(["a" * 700] * 5)]
    [2, 2, 1]
    """
    found: list[list[str]] = [[]]
    for word in words:
        if found[-1] and len(",".join([*found[-1], word])) > WORD_CHARACTERS:
            found.append([])
        found[-1].append(word)
    return found
