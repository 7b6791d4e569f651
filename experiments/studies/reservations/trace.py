"""Machines for rKube's figure 12, whose trace is not here: drawn, not recorded.

python -m experiments.studies.reservations.trace > experiments/studies/reservations/trace.toml
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import click

from ...plan.hosts import Resident
from ...plan.shapes import fan_out

SEED = 1
MACHINES = 16
"""Of the paper's 50: what twenty minutes of a core run."""

CPUS = 8
"""Of the paper's 40."""

ONLINE = (2, 3, 4)
"""Services of a machine. Alibaba's 2017 trace, which rKube replays, has 11 089 on 1300 machines of 64 CPUs
(Lu et al., "Imbalance in the cloud", 2017), so eight or nine on each; here as many as eight CPUs can have."""

BUSY = (0.15, 0.5)
"""Of the time of a service's main thread."""

HELPERS = {1: 1.0, 2: 1.0, 3: 2.0}
"""How many, and what a service with so many requests: the more it may need at once, the more."""

LEFT_FOR_BATCH = 2
"""CPUs that no service requests."""

BATCH_THREADS = (3, 8)
"""Of a batch job, of which a machine has as many as CPUs are left, at most three. Nothing limits them."""

HEAD = f"""\
# rKube's figure 12 at a fifth of its size, with drawn machines (trace.py), not Alibaba's: {CPUS} CPUs;
# services that use a part of what they request, beside batch jobs that take the rest. Nobody has a CPU limit.
cpus = {CPUS}
kernel = "sched_ext"
policies = ["critical", "strict", "scx"]
seconds = 2.0
warmup_s = 1.0
lead_s = 4.0
"""


def machine(rng: Random) -> Iterator[Resident]:
    """Who is on one."""
    free = CPUS - LEFT_FOR_BATCH
    for number in range(rng.choice(ONLINE)):
        helpers = rng.choice(sorted(HELPERS))
        if HELPERS[helpers] > free:
            break
        free -= round(HELPERS[helpers])
        rate = rng.uniform(*BUSY) / fan_out(1, helpers, None).slowest_us * 1e6
        yield Resident(
            name=f"online-{number}",
            kind="service",
            threads=1 + helpers,
            cpus=HELPERS[helpers],
            reserved=True,
            rate_per_s=round(rate),
        )
    left = free + LEFT_FOR_BATCH
    jobs = rng.randint(1, min(3, left))
    for number in range(jobs):
        yield Resident(
            name=f"batch-{number}",
            kind=rng.choice(("barriers", "computing")),
            threads=rng.randint(*BATCH_THREADS),
            cpus=left * 100 // jobs / 100,  # rounded down: no more than are left
        )


def told(machines: int = MACHINES, seed: int = SEED) -> str:
    """The file of so many."""
    rng = Random(seed)
    hosts = (f'\n[[host]]\nname = "machine-{number}"\n{_workloads(rng)}' for number in range(1, machines + 1))
    return HEAD + "".join(hosts)


def _workloads(rng: Random) -> str:
    return "".join(map(_workload, machine(rng)))


def _workload(one: Resident) -> str:
    asked = {"name": f'"{one.name}"', "kind": f'"{one.kind}"', "threads": one.threads, "cpus": one.cpus}
    if one.reserved:
        asked |= {"reserved": "true", "rate_per_s": f"{one.rate_per_s:g}"}
    return "[[host.workload]]\n" + "".join(f"{key} = {value}\n" for key, value in asked.items())


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Print the experiment file."""
    click.echo(told(), nl=False)


if __name__ == "__main__":
    command()
