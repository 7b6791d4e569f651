"""The experiment as a command."""

from __future__ import annotations

import json
import secrets
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import click
from scipy import stats

from dasec.errors import ExitStatus, Refusal
from dasec.lab.kit import facts, needs
from dasec.lab.kit.arms import CONTROL, NONE, arms_for, schedule
from dasec.lab.kit.errors import Interrupted, interruptible
from dasec.lab.kit.ratios import CONFIDENCE, Estimate, paired_ratios, verdict
from dasec.policies import POLICIES
from guests.libvirtd import missing_tools

from .collector import collect_orphans
from .measure import Life, Site

PARTS = ("start", "destroy", "destroy_exit", "shutdown", "shutdown_exit", "undefine")


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("--policies", default="critical,dasec", help="Beside none and none-again.")
@click.option("--repetitions", type=click.IntRange(1, 1000), default=20)
@click.option("--busy/--idle", default=True, help="Do the guest's vCPUs burn?")
@click.option("--collect/--leave", default=True, help="Who collects a QEMU that ended: we, or the host?")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), help="Of the orders, else a fresh one.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), default="results/lifecycle.jsonl")
def command(out: Path, policies: str, repetitions: int, seed: int | None, **flags: bool) -> None:
    """Domains started, destroyed and shut down beside the daemon and without it; every life into --out."""
    arms = arms_for([name.strip() for name in policies.split(",")])
    if unknown := [name for name in arms if name not in (*POLICIES, NONE, CONTROL)]:
        raise Refusal(ExitStatus.USAGE, f"lifecycle: --policies: {', '.join(unknown)}: unknown")
    if out.exists():
        raise Refusal(ExitStatus.USAGE, f"lifecycle: --out: {out}: is there already: name another file")
    needs.check_root()
    needs.check_libraries()
    if missing := missing_tools():
        raise Refusal(ExitStatus.HOST, f"lifecycle: {', '.join(missing)}: not found: DASEC_CI=1 tools/setup")
    if flags["collect"]:
        collect_orphans()
    out.parent.mkdir(parents=True, exist_ok=True)
    orders = schedule(arms, repetitions, secrets.randbelow(2**31) if seed is None else seed)
    lives: list[Life] = []
    try:
        with (
            interruptible(),
            tempfile.TemporaryDirectory(prefix="dasec-life-") as folder,
            out.open("w") as file,
        ):
            file.write(json.dumps({"host": facts.metadata(), **flags}, default=str) + "\n")
            for life in _live(Path(folder), orders, busy=flags["busy"]):
                lives.append(life)
                file.write(json.dumps(asdict(life)) + "\n")
                file.flush()
    except Interrupted:
        raise Refusal(ExitStatus.FAILED, f"lifecycle: interrupted: {out} keeps what was finished") from None
    for line in report(lives, arms):
        click.echo(line)


def _live(folder: Path, orders: Sequence[Sequence[str]], *, busy: bool) -> Iterator[Life]:
    site = Site(folder, busy=busy)
    try:
        for repetition, order in enumerate(orders):
            for arm in order:
                yield site.life(arm, repetition)
            click.echo(f"repetition {repetition + 1}/{len(orders)}", err=True)
    finally:
        site.close()


def report(lives: Sequence[Life], arms: Sequence[str]) -> Iterator[str]:
    """A table: medians and quartiles in ms, ratios to the plain host, and what is to be said of them."""
    yield "| | arm | median, quartiles ms | ratio to `none` | verdict |\n|---|---|---|---|---|"
    for part in PARTS:
        taken = {arm: _ns(lives, arm, part) for arm in arms}
        control = _median_of(paired_ratios(taken[CONTROL], taken[NONE]))
        spread = max(control.high, 1 / control.low)
        for arm in arms:
            effect = _median_of(paired_ratios(taken[arm], taken[NONE]))
            ratio = f"{effect.ratio:.3f} [{effect.low:.3f}, {effect.high:.3f}]"
            judged = "A/A" if arm == CONTROL else verdict(effect, len(taken[arm]), spread).value
            told = " | | |" if arm == NONE else f" | {ratio} | {judged} |"
            what = part.replace("_exit", ", until QEMU ended")
            yield f"| {what} | `{arm}` | {_spread_ms(taken[arm])}{told}"


def _median_of(ratios: Sequence[float]) -> Estimate:
    """The median and, by the order of the values alone, its confidence interval: libvirt's looks make steps
    of 0.2 s, and one stop on a machine that was busy would decide a mean."""
    ordered = sorted(ratios)
    outside = int(stats.binom.ppf((1 - CONFIDENCE) / 2, len(ordered), 0.5)) - 1
    low, high = max(0, outside), min(len(ordered) - 1, len(ordered) - 1 - outside)
    return Estimate(statistics.median(ordered), ordered[low], ordered[high])


def _ns(lives: Sequence[Life], arm: str, part: str) -> list[float]:
    """In the order of the repetitions; as latencies, so that half a millisecond has a ratio, too."""
    return [1e9 * getattr(one, f"{part}_s") for one in lives if one.arm == arm]


def _spread_ms(values_ns: Sequence[float]) -> str:
    if len(values_ns) < 2:
        return f"{values_ns[0] / 1e6:.1f}"
    low, middle, high = (value / 1e6 for value in statistics.quantiles(values_ns, n=4))
    return f"{middle:.1f}, {low:.1f}–{high:.1f}"
