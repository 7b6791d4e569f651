"""In the guest: measures one block as the suite does on a host, but for the guard against its own death.

python -m experiments.studies.loads.inside WORD
"""

from __future__ import annotations

import contextlib
import sys

from dasec.lab.kit.blame import BlameWatch
from dasec.lab.kit.run import Bench, measure_one

from ...places.counted.cpus import Cpus
from ...places.counted.inside import refusing, site, tell, unhurried
from ...plan.cells import plan_of
from .order import Order


def main() -> None:
    """All arms, in this block's order."""
    order = Order.read(sys.argv[1])
    wish, block, cpus = order.wish, order.block, Cpus(order.wish.cores)
    with site(cpus) as here, contextlib.ExitStack() as stack:
        blame = BlameWatch() if wish.blame else None
        if blame:
            stack.callback(blame.close)
        bench = Bench(
            unhurried(plan_of(wish, block)),
            here.tools,
            here.tree,
            here.directory,
            cpus.iterations_per_us,
            blame,
            here.directory if wish.records else None,
        )
        for arm in block.arms:
            tell(measure_one(bench, arm, block.repetition, lambda: None), cpus, bench.records)


if __name__ == "__main__":
    refusing(main)
