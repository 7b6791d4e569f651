"""WYSIWYG's figure 1 with a real OpenMP program: as many threads as it sees CPUs, under a limit for fewer.

    python -m experiments.studies.wysiwyg.sized --out DIR [--cpus 6] [--rounds 6] [--loops 500]

In a deterministic guest; needs no root. A minute of one core.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from guests.boot import EXIT_MARK, pack_initramfs
from guests.qemu import counting_qemu

from ...places.counted.cpus import Cpus
from ...places.counted.kernels import kernel_for, or_refuse
from ...places.counted.machine import Machine, Task, build_turns, measure

SOURCE = Path(__file__).resolve().parent / "sized.c"
KERNEL = "6.12"
INIT = f"""#!/bin/busybox sh
busybox mkdir -p /proc /sys /dev
busybox mount -t proc proc /proc
busybox mount -t sysfs sys /sys
busybox mount -t devtmpfs dev /dev
busybox mount -t cgroup2 cgroup2 /sys/fs/cgroup
/bin/sized $(busybox echo $task | busybox tr , ' ')
busybox echo "{EXIT_MARK}$?"
busybox reboot -f
"""

SETUPS = ("quota", "quota and so many threads", "cpuset and quota")
"""As sized.c calls them; the paper: QUOTA, QUOTA + MANUAL CONF, CPU SET."""

Times = Mapping[str, Sequence[float]]


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True)
@click.option("--cpus", type=click.IntRange(3, 64), default=6)
@click.option("--rounds", type=click.IntRange(1, 1000), default=6, help="Runs of each set-up.")
@click.option("--loops", type=click.IntRange(1, 100_000), default=500, help="Barriers of a run.")
def command(out: Path, cpus: int, rounds: int, loops: int) -> None:
    """How long a program that sizes its thread pool by what it sees takes in each set-up."""
    out.mkdir(parents=True, exist_ok=True)
    machine = or_refuse(lambda: _machine(out, Cpus(cpus)))
    told = measure(machine, Task("sized", f"{cpus},{rounds},{loops}", rounds * len(SETUPS)), lambda: None)
    (out / "runs.jsonl").write_text("".join(f"{json.dumps(run)}\n" for run in told.runs), encoding="utf-8")
    page = table({name: times_of(told.runs, name) for name in SETUPS})
    (out / "table.md").write_text(page, encoding="utf-8")
    click.echo(page)


def times_of(runs: Sequence[Mapping[str, object]], setup: str) -> Sequence[float]:
    """Of all runs in that set-up, in ms."""
    return [float(str(run["took_ms"])) for run in runs if run["setup"] == setup]


def table(times: Times) -> str:
    """A line for each set-up, beside the first."""
    first = statistics.median(times[SETUPS[0]])
    lines = ["| set-up | median ms | shortest | longest | over quota alone |", "|---|---|---|---|---|"]
    for name, each in times.items():
        middle = statistics.median(each)
        words = (name, f"{middle:.0f}", f"{min(each):.0f}", f"{max(each):.0f}", f"{middle / first:.2f}")
        lines.append(f"| {' | '.join(words)} |")
    return "\n".join(lines) + "\n"


def _machine(scratch: Path, cpus: Cpus) -> Machine:
    tree = scratch / "root"
    shutil.rmtree(tree, ignore_errors=True)
    (tree / "bin").mkdir(parents=True)
    program = tree / "bin/sized"
    subprocess.run(
        ["cc", "-O2", "-Wall", "-Wextra", "-fopenmp", "-static", "-o", str(program), str(SOURCE)],
        check=True,
        stderr=subprocess.DEVNULL,  # a warning of libgomp's own about dlopen
    )
    archive = pack_initramfs(tree, INIT)
    turns = build_turns(scratch, cpus)
    return Machine(counting_qemu(), kernel_for(KERNEL, cpus), archive, turns, cpus)


if __name__ == "__main__":
    command()
