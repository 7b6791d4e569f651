"""In the guest: measures one block as the suite of loads does.

python -m experiments.run.inside WORD
"""

from __future__ import annotations

import sys

from dasec.lab.kit.run import Bench, measure_one

from ..places.counted.inside import refusing, site, tell, unhurried
from ..plan.order import Order


def main() -> None:
    """All arms, in this block's order."""
    order = Order.read(sys.argv[1])
    block, cpus = order.block, order.experiment.machine
    with site(cpus) as here:
        plan = unhurried(order.experiment.plan(block))
        records = here.directory if order.experiment.records else None
        bench = Bench(
            plan, here.tools, here.tree, here.directory, cpus.iterations_per_us, blame=None, records=records
        )
        for arm in block.arms:
            tell(measure_one(bench, arm, block.repetition, lambda: None), cpus, records)


if __name__ == "__main__":
    refusing(main)
