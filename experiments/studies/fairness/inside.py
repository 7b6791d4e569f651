"""In the guest: measures one block as the experiment does on a host.

python -m experiments.studies.fairness.inside WORD
"""

from __future__ import annotations

import os
import sys

from dasec.lab.kit.run import Bench, measure_one

from ...places.counted.cpus import Cpus
from ...places.counted.inside import SeatedTree, refusing, site, tell, unhurried
from .wish import Order, plan_of


class PinnedTree(SeatedTree):
    """Every vCPU keeps to one of the services' cores: the first to the first, and so on in turn."""

    __slots__ = ()

    def place(self, tid: int, name: str) -> None:
        """Into the group, whose name ends with the vCPU's number, and to the core."""
        super().place(tid, name)
        number = int(name.rpartition("vcpu")[2])
        cores = max(os.sched_getaffinity(0))  # this process has the core after them
        os.sched_setaffinity(tid, {number % cores})


def main() -> None:
    """All arms, in this block's order."""
    order = Order.read(sys.argv[1])
    wish, block, cpus = order.wish, order.block, Cpus(order.wish.cores)
    with site(cpus) as here:
        tree = PinnedTree(here.tree.version, here.tree.top, here.tree.name) if wish.pinned else here.tree
        plan = unhurried(plan_of(wish, block))
        bench = Bench(plan, here.tools, tree, here.directory, cpus.iterations_per_us)
        for arm in block.arms:
            tell(measure_one(bench, arm, block.repetition, lambda: None), cpus)


if __name__ == "__main__":
    refusing(main)
