"""The testbed in a few minutes: is the machine as it should be, and does an A/B give the same twice?"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import click

from dasec.errors import ExitStatus, Refusal

from ...places.counted.guests import keep_block
from ...places.counted.kernels import PATCHED, TESTBED, or_refuse
from ...places.counted.speed import cpus_for
from ...places.counted.validate import both, validate_all
from ...plan.file import told_in
from ...run.guests import host_for, machine_for, task_for
from ...run.host import keep
from ...run.planned import blocks, experiment_in, publish, store_in

CPUS_VALIDATED = 4
EXPERIMENT = Path(__file__).resolve().parent / "quick.toml"


def quick(guests: int, out: Path) -> None:
    """Both. Refuses a machine that is not as it should be, and two A/Bs that differ."""
    experiment = experiment_in(told_in(EXPERIMENT), EXPERIMENT)
    store = store_in(out / "ab", type(experiment))
    if store.done():
        raise Refusal(ExitStatus.USAGE, f"{TESTBED}: --out: {out} holds results: name another folder")
    validate_all((cpus_for(CPUS_VALIDATED),), PATCHED, guests, out / "machine")
    (block,) = blocks(experiment)
    machine = or_refuse(lambda: machine_for(experiment, store.folder))
    first, second = both(machine, task_for(experiment, block), guests)
    if first.runs != second.runs:
        for number, one in enumerate((first, second), 1):
            (out / f"run-{number}.json").write_text(json.dumps(one.runs, indent=1) + "\n", encoding="utf-8")
        raise Refusal(
            ExitStatus.FAILED, f"{TESTBED}: two runs differ: compare {out}/run-1.json and run-2.json"
        )
    known = store.belonging_to(None, experiment, host_for(machine, experiment))
    if why := keep_block(block, first, store, partial(keep, experiment, store)):
        raise Refusal(ExitStatus.FAILED, f"{TESTBED}: {why}")
    publish(store, known)
    said = len(json.dumps(first.runs))
    click.echo(f"both runs of the A/B are the same, byte by byte: {said} bytes of results")
