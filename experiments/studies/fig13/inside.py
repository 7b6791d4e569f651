"""In the guest: measures one cell with the demo's own machinery.

python -m experiments.studies.fig13.inside RATIO-REPETITION
"""

from __future__ import annotations

import sys

from dasec.lab.kit.run import Bench, measure_one

from ...places.counted.inside import refusing, site, tell, unhurried
from .cells import CPUS, Cell


def main() -> None:
    """All arms, in this guest's order."""
    cell = Cell.named(sys.argv[1])
    with site(CPUS) as here:
        bench = Bench(unhurried(cell.plan), here.tools, here.tree, here.directory, CPUS.iterations_per_us)
        for arm in cell.order:
            tell(measure_one(bench, arm, cell.repetition, lambda: None), CPUS)


if __name__ == "__main__":
    refusing(main)
