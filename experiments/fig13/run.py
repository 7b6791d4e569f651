"""Each of the paper's rules alone and all three, at consolidation ratios 1 to 4 (the paper's Figure 13).

    python experiments/fig13/run.py --out DIRECTORY [--ratios 1,2,3,4] [--seconds 5] [--repetitions 5]

As root on the kernel to be measured; experiments/fig13/guest.py runs it in a guest of our patched one.
A ratio is so many fan-out services with as many vCPUs each as there are cores. Per ratio one JSON
file in the format of `dasec demo`, with the arms interleaved and an A/A control.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import click
from rich.console import Console

from dasec.demo import needs
from dasec.demo.arms import arms_for
from dasec.demo.layout import Layout
from dasec.demo.main_job import Wish, do
from dasec.demo.run import Plan
from dasec.demo.scenario import FanOut, Scenario, Timing
from dasec.exits import Refusal

RATE_PER_S = 300
"""Requests of one service: with the default stages 0.5 cores of work, 0.15 of it in the background, so
that four services load four cores to 0.66 and two cores, whose services have no background, to 0.66."""

RULES = ("tsa", "rla", "rcr")

CFS = "[rla]\nfloor_us = 100\nstart_us = 2000\nceiling_us = 6000\nrespect_burst = false\n"
"""On CFS the wake-up granularity means something between 0 and half the scheduling latency (12 ms on two
CPUs, 18 ms on four: kernel/sched/fair.c), and a short one interrupts nobody's own burst."""


def settings_for(arm: str) -> str:
    """The configuration under which only the arm's rule works, or all of them."""
    switches = "".join(f"[{rule}]\nenabled = false\n" for rule in RULES if arm not in (rule, "all"))
    if "[rla]" not in switches:
        switches += CFS
    return f'policy = "dasec"\n[guard]\nenabled = false\n{switches}'


def scenario_for(cores: int, ratio: int) -> Scenario:
    """`ratio` services of `cores` vCPUs each: main, helpers, from three cores on one in the background."""
    background = 1 if cores > 2 else 0
    helpers = max(1, cores - 1 - background)
    services = [
        FanOut(f"service-{index}", rate_per_s=RATE_PER_S, helpers=helpers, background=background)
        for index in range(ratio)
    ]
    return Scenario(cores, tuple(services))


@click.command()
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True)
@click.option("--ratios", default="1,2,3,4")
@click.option("--seconds", type=click.FloatRange(min=0.5), default=5.0)
@click.option("--warmup", type=click.FloatRange(min=0.5), default=4.0, help="In which the rules settle.")
@click.option("--lead", type=click.FloatRange(min=0.5), default=1.2, help="For everything to start.")
@click.option("--repetitions", type=click.IntRange(min=1), default=5)
@click.option("--layout", type=click.Choice([str(one) for one in Layout]), default=str(Layout.VM))
@click.option("--seed", type=int, default=1)
def main(
    out: Path,
    ratios: str,
    seconds: float,
    warmup: float,
    lead: float,
    repetitions: int,
    layout: str,
    seed: int,
) -> None:
    """Measure and write DIRECTORY/ratio-N.json."""
    needs.check_root()
    needs.check_libraries()
    out.mkdir(parents=True, exist_ok=True)
    arms = (*RULES, "all")
    cores = len(os.sched_getaffinity(0))
    for ratio in map(int, ratios.split(",")):
        plan = Plan(
            scenario_for(cores, ratio),
            Layout(layout),
            Timing(seconds, warmup, lead),
            arms_for(arms),
            repetitions,
            seed,
            {arm: settings_for(arm) for arm in arms},
        )
        outcome = do(Wish(plan, out / f"ratio-{ratio}.png"), Console(width=110))
        text = json.dumps(outcome.document, indent=1) + "\n"
        (out / f"ratio-{ratio}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    try:
        main()
    except Refusal as refusal:
        for line in refusal.lines:
            click.echo(line, err=True)
        raise SystemExit(refusal.status) from None
