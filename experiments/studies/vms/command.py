"""The experiment as a command."""

from __future__ import annotations

import os
import random
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

from dasec.errors import ExitStatus, Refusal
from dasec.lab.kit import facts, needs
from dasec.lab.kit.arms import arms_for
from dasec.lab.kit.errors import Interrupted
from dasec.lab.kit.scenario import Memcached, Scenario
from dasec.lab.kit.signals import interruptible
from dasec.lab.kit.untouched import changes, look
from dasec.policies import POLICIES
from guests.built import HostCannotError, guest_image
from guests.libvirtd import missing_tools
from guests.memcached import VCPUS

from ...plan.blocks import Block
from ...plan.cells import Cell
from ...results.analysis import summarise
from ...results.store import Asked, Store
from .fleet import Fleet
from .measure import INSIDE, OUTSIDE, Load, measure, seen_from
from .report import publish
from .wish import Wish

EXPERIMENT = "vms"
LEAD_S = 0.5
"""For the clients to fill memcached."""


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("--ratios", default="1,2,3", help="vCPUs a core: whole numbers of guests.")
@click.option("--policies", default="critical,dasec", help="Beside none and none-again.")
@click.option("--repetitions", type=click.IntRange(1, 1000), default=4)
@click.option("--seconds", type=click.FloatRange(1, 600), default=5.0, help="Measured part of a run.")
@click.option("--warmup", type=click.FloatRange(0, 60), default=1.0, help="Before it: policies settle.")
@click.option("--rate", type=click.FloatRange(1, 10_000), default=50.0, help="Requests/s of each client.")
@click.option("--bursts", type=click.FloatRange(0.1, 1000), default=20.0, help="Bursts of 10 ms/s and guest.")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), help="Of arrivals and orders, else a fresh one.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default=Path("results") / "vms")
@click.option("--report", "report_only", is_flag=True, help="Only the report of what --out holds.")
def command(out: Path, report_only: bool, rate: float, bursts: float, **options: object) -> None:  # noqa: FBT001
    """Consolidated VMs under policies beside the plain host; a report in the --out folder, a new one."""
    store = Store(out, Wish)
    known = store.asked()
    if report_only:
        if known is None:
            raise Refusal(ExitStatus.USAGE, f"vms: {out}: holds no results: give their folder")
    elif known is not None:
        raise Refusal(ExitStatus.USAGE, f"vms: --out: {out}: holds results: name another folder, or --report")
    else:
        known = Asked(_wish(options), facts.metadata())
        _run(known, store, rate, bursts)
    found = [summarise(cell, store.done(), known.wish.arms) for cell in _cells(known.wish)]
    summaries = [one for one in found if one]
    if not summaries:
        raise Refusal(ExitStatus.FAILED, f"vms: {out}: no run is finished yet")
    click.echo(f"report: {publish(known.wish, summaries, known.host, out)}")


def _wish(options: dict[str, object]) -> Wish:
    policies = [name.strip() for name in str(options["policies"]).split(",")]
    if unknown := [name for name in policies if name not in POLICIES]:
        raise Refusal(ExitStatus.USAGE, f"vms: --policies: {', '.join(unknown)}: unknown")
    try:
        ratios = tuple(sorted(float(part) for part in str(options["ratios"]).split(",")))
    except ValueError:
        ratios = ()
    cores = len(os.sched_getaffinity(0))
    if not ratios or not all(_guests(ratio, cores) > 0 for ratio in ratios):
        raise Refusal(ExitStatus.USAGE, f"vms: --ratios: {options['ratios']}: give numbers, as 1,2,3")
    seed = options["seed"]
    return Wish(
        loads=(OUTSIDE, INSIDE),
        ratios=ratios,
        arms=arms_for(policies),
        repetitions=int(str(options["repetitions"])),
        seconds=float(str(options["seconds"])),
        warmup_s=float(str(options["warmup"])),
        lead_s=LEAD_S,
        cores=cores,
        seed=int(str(seed)) if seed is not None else secrets.randbelow(2**31),
    )


def _guests(ratio: float, cores: int) -> int:
    """So many guests make this ratio, as nearly as whole guests can."""
    return round(ratio * cores / VCPUS)


def _cells(wish: Wish) -> Iterator[Cell]:
    """Each place of a client at each ratio."""
    for where in wish.loads:
        for ratio in wish.ratios:
            number = _guests(ratio, wish.cores)
            tenants = tuple(Memcached(f"{where}-{index}", threads=VCPUS) for index in range(number))
            yield Cell(where, ratio, 0.0, "vm", Scenario(wish.cores, tenants))


def _run(known: Asked[Wish], store: Store[Wish], rate: float, bursts: float) -> None:
    needs.check_root()
    needs.check_libraries()
    if missing := missing_tools():
        raise Refusal(ExitStatus.HOST, f"vms: {', '.join(missing)}: not found: DASEC_CI=1 tools/setup")
    try:
        image = guest_image("small")
    except HostCannotError as cannot:
        raise Refusal(ExitStatus.HOST, f"vms: {cannot}") from cannot
    for line in facts.warnings(known.wish.cores):
        click.echo(f"warning: {line}")
    before = look()
    try:
        with (
            interruptible(),
            tempfile.TemporaryDirectory(prefix="dasec-vms-") as folder,
            Fleet(Path(folder), image) as fleet,
        ):
            store.begin(known)
            _measure(known.wish, store, fleet, Path(folder), (rate, bursts))
    except Interrupted:
        raise Refusal(
            ExitStatus.FAILED, f"vms: interrupted: {store.folder} keeps what was finished"
        ) from None
    for line in changes(before, look()):
        click.echo(f"warning: host not as before: {line}")


def _measure(wish: Wish, store: Store[Wish], fleet: Fleet, folder: Path, rates: tuple[float, float]) -> None:
    """Ratio after ratio, because guests take long to boot; the arms of a repetition follow each other."""
    shuffler = random.Random(wish.seed)
    calibration = None
    for ratio in wish.ratios:
        fleet.grow(_guests(ratio, wish.cores))
        calibration = calibration or fleet.calibrate()
        load = Load(*rates, calibration, wish.timing)
        for repetition in range(wish.repetitions):
            order = tuple(shuffler.sample(wish.arms, len(wish.arms)))
            click.echo(f"ratio {ratio:g}, repetition {repetition + 1}/{wish.repetitions}")
            runs = [measure(fleet, load, arm, repetition, wish.seed, folder) for arm in order]
            for cell in _cells(wish):
                if cell.ratio == ratio:
                    seen = [seen_from(cell.load, run) for run in runs]
                    store.add(Block(cell, repetition, order), seen)
