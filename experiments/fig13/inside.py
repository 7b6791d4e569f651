"""In the guest: measures one cell with the demo's own machinery; each run is a line of JSON on the console.

python -m experiments.fig13.inside RATIO-REPETITION
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, replace
from pathlib import Path

from dasec.demo.results import RunResult
from dasec.demo.run import Bench, Tools, measure_one
from dasec.demo.tree import Tree
from dasec.demo.workspace import prepared
from dasec.exits import Refusal
from dasec.linux.cgroupfs import find_hierarchy
from dasec.load import find_tool

from .cells import CORES, ITERATIONS_PER_US, Cell

RUN = "RUN:"
SERVICE_CPUS = Path("/run/service-cpus")


def main() -> None:
    """The load tool's wrapper puts the services on the first cores; all else stays on the last one."""
    cell = Cell.named(sys.argv[1])
    SERVICE_CPUS.write_text(f"{(1 << CORES) - 1:x}\n", encoding="ascii")
    os.sched_setaffinity(0, {CORES})
    tree = Tree.of(find_hierarchy())
    tools = Tools(find_tool(), memcached=Path("/nonexistent"))
    with prepared(tree) as directory:
        bench = Bench(cell.plan, tools, tree, directory, ITERATIONS_PER_US)
        for arm in cell.order:
            print(
                RUN + json.dumps(_small(measure_one(bench, arm, cell.repetition, lambda: None))), flush=True
            )


def _small(run: RunResult) -> dict[str, object]:
    """Without the histograms: the figures are kept, and the console is slow."""
    tenants = tuple(replace(one, latencies=replace(one.latencies, hdr="")) for one in run.tenants)
    return asdict(replace(run, tenants=tenants))


if __name__ == "__main__":
    try:
        main()
    except Refusal as refusal:
        print(*refusal.lines, sep="\n")
        sys.exit(refusal.status)
