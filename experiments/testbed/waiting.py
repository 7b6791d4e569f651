"""The paper's Figure 3: how many vCPUs of a workload wait while others are ready, from the daemon's records.

python -m experiments.testbed.waiting OUT FILE: of what was run in the folder OUT, to FILE of results/
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from dasec.demo.run import record_name

from ..suite.occasions import Occasions, occasions
from ..suite.store import Store
from .experiment import Experiment
from .findings import load_and_ratio
from .kernels import TESTBED

MOST = 13
"""Waiting vCPUs of 16: of occasions with more than that the paper tells the part (section 2)."""


@dataclass(frozen=True, slots=True)
class Seen:
    """In all runs of an arm at a ratio."""

    ratio: float
    arm: str
    occasions: Occasions


_SEEN = TypeAdapter(tuple[Seen, ...])


def read(file: Path) -> tuple[Seen, ...]:
    """What was kept there."""
    return _SEEN.validate_json(file.read_bytes())


def write(folder: Path, file: Path) -> None:
    """What that folder's records tell, to be read without them."""
    file.write_bytes(_SEEN.dump_json(tuple(seen(folder)), indent=1) + b"\n")


def seen(folder: Path) -> Iterator[Seen]:
    """Of each cell and arm whose records are in that folder of an experiment."""
    store = Store(folder, Experiment, TESTBED)
    asked = store.asked()
    if asked is None:
        raise FileNotFoundError(f"{folder}: holds no experiment")
    wish = asked.wish.wish
    for cell in asked.wish.cells.possible:
        place = folder / "records" / cell.name
        names = frozenset(tenant.name for tenant in cell.scenario.tenants)
        for arm in wish.arms:
            files = [place / record_name(arm, number) for number in range(wish.repetitions)]
            found = occasions((file for file in files if file.exists()), names)
            if found.looks:
                yield Seen(load_and_ratio(cell.name)[1], arm, found)


def waiting_table(found: Sequence[Seen]) -> str:
    """Of each arm, by ratio: how often somebody waited while others were ready, how many, and how often
    nearly all."""
    ratios = sorted({one.ratio for one in found})
    told = {(one.arm, one.ratio): _told(one.occasions) for one in found}
    head = ["", *(f"ratio {ratio:.3g}" for ratio in ratios)]
    rows = [[arm, *(told[arm, ratio] for ratio in ratios)] for arm in dict.fromkeys(one.arm for one in found)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *rows))


def _told(one: Occasions) -> str:
    often = f"{100 * one.total / one.looks:.0f} % of {one.looks} looks"
    if not one.total:
        return often
    return f"{often}; {one.mean:.1f} wait; more than {MOST} in {100 * one.more_than(MOST):.0f} %"


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]))
