"""Guests that measure their own CPUs, each twice."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import click

from dasec.errors import ExitStatus, Refusal
from guests.boot import EXIT_MARK, pack_initramfs
from guests.qemu import counting_qemu

from .batch import twice
from .cpus import Cpus
from .image import TASK
from .kernels import TESTBED, kernel_for, or_refuse
from .machine import GuestFailedError, Machine, Run, Task, build_turns
from .machine import Told as Said
from .picture import draw
from .validation import WINDOWS, Told, Validation, plain, table

PROBE = Path(__file__).resolve().parent / "probe.c"
LINES = 9 + len(WINDOWS)
"""Of the probe: four speeds, three wake-ups, two gaps, the balance."""

INIT = f"""#!/bin/busybox sh
busybox mkdir -p /proc
busybox mount -t proc proc /proc
/probe ${TASK}
busybox echo "{EXIT_MARK}$?"
busybox reboot -f
"""


def probing_machine(scratch: Path, kernel: str, cpus: Cpus) -> Machine:
    """A guest with nothing but the probe."""
    scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        tree = Path(folder) / "probe"
        tree.mkdir()
        options = ("-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-pthread")
        subprocess.run(["cc", *options, "-o", str(tree / "probe"), str(PROBE)], check=True)
        archive = Path(shutil.move(pack_initramfs(tree, INIT), scratch / "probe.cpio"))
    image = kernel_for(kernel, cpus)
    return Machine(counting_qemu(), image, archive, build_turns(scratch, cpus), cpus)


def validate(machine: Machine, guests: int) -> Validation:
    """Two runs of it. Refuses if one does not end well."""
    services = machine.cpus.services
    began_s = time.monotonic()
    first, second = both(machine, Task(f"{services} CPUs", str(services), LINES), guests)
    took_s = time.monotonic() - began_s
    return Validation(machine.cpus, tuple(map(_told, first.runs)), first.runs == second.runs, took_s)


def both(machine: Machine, task: Task, guests: int) -> tuple[Said, Said]:
    """The same task in two guests. Refuses if one does not end well."""
    try:
        return twice(machine, task, guests)
    except GuestFailedError as error:
        lines = str(error).splitlines()
        raise Refusal(ExitStatus.FAILED, *(f"{TESTBED}: {line}" for line in lines)) from None


def _told(run: Run) -> Told:
    kind, what, values = run["kind"], run["what"], run["values"]
    assert isinstance(kind, str)
    assert isinstance(what, str)
    assert isinstance(values, list)
    return Told(kind, what, tuple(values))


def validate_all(machines: Sequence[Cpus], kernel: str, guests: int, out: Path) -> None:
    """Each of them; then what was found, as a file, a table and a picture. Refuses what is not as
    it should be, after that."""
    found = []
    for cpus in machines:
        make = partial(probing_machine, out / "guest", kernel, cpus)
        found.append(validate(or_refuse(make), guests))
        click.echo(table(found[-1:]))
    publish(found, kernel, out)
    failures = [f"{one.name} CPUs: {line}" for one in found for line in one.failures]
    if failures:
        raise Refusal(ExitStatus.FAILED, *(f"{TESTBED}: {line}" for line in failures))


def publish(found: Sequence[Validation], kernel: str, out: Path) -> None:
    """validation.json, validation.md, validation.png."""
    told = {"kernel": kernel, "machines": [{**asdict(one.cpus), **plain(one)} for one in found]}
    (out / "validation.json").write_text(json.dumps(told) + "\n", encoding="utf-8")
    (out / "validation.md").write_text(table(found) + "\n", encoding="utf-8")
    draw(found, out / "validation.png")
    click.echo(f"found: {out}/validation.md, .json, .png")
