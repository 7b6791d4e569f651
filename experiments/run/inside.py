"""In the guest: measures one block as on a host, but for the guard against its own death.

python -m experiments.run.inside WORD
"""

from __future__ import annotations

import contextlib
import sys

from dasec.lab.kit.bench import Bench
from dasec.lab.kit.blame import BlameWatch
from dasec.lab.kit.run import measure_one

from ..places.counted.domains import homes
from ..places.counted.inside import PinnedTree, refusing, site, tell, unhurried
from ..plan.order import Order


def main() -> None:
    """All arms, in this block's order."""
    order = Order.read(sys.argv[1])
    experiment, block, cpus = order.experiment, order.block, order.experiment.machine
    with site(cpus) as here, contextlib.ExitStack() as stack:
        blame = BlameWatch() if experiment.blame else None
        if blame:
            stack.callback(blame.close)
        tree = here.tree
        if experiment.is_seated:
            tree = PinnedTree(tree.version, tree.top, tree.name, tree.clients)
        bench = Bench(
            unhurried(experiment.plan(block)),
            tree,
            here.directory,
            cpus.iterations_per_us,
            blame,
            here.directory if experiment.records else None,
            homes=homes,
        )
        for arm in block.arms:
            tell(measure_one(bench, arm, block.repetition, lambda: None), cpus, bench.records)


if __name__ == "__main__":
    refusing(main)
