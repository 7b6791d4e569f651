"""What the kernel patch costs, in instructions: unused, counting, and with a controller at work.

python experiments/studies/costs/patch_cost/measure.py
"""

from __future__ import annotations

import os
import sys
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[4]
sys.path.insert(0, str(REPOSITORY))

from guests.built import HostCannotError, patched_image  # noqa: E402
from guests.cost import CONTROLLED, COUNTED, LOADS, UNUSED, Cost, cost  # noqa: E402
from guests.counted import jobs_initramfs  # noqa: E402
from guests.qemu import QemuMissingError, counting_qemu  # noqa: E402

STOCK = "without the patch"
ARMS = (
    (STOCK, UNUSED, False),
    ("without the patch again (A/A)", UNUSED, True),
    ("patched, unused", UNUSED, False),
    ("patched, unused again", UNUSED, True),
    ("patched, counting", COUNTED, False),
    ("patched, controlled", CONTROLLED, False),
)


def main() -> None:
    """Builds what is missing, boots each arm, prints the table."""
    try:
        qemu, stock, patched = counting_qemu(), patched_image("--stock"), patched_image()
    except (HostCannotError, QemuMissingError) as cannot:
        sys.exit(f"patch-cost: {cannot}")
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(os.cpu_count()) as pool:
        initramfs = jobs_initramfs(Path(scratch))
        costs: dict[tuple[str, str], Future[Cost]] = {
            (load, name): pool.submit(
                cost,
                *(qemu, patched if name.startswith("patched") else stock, initramfs, load, use),
                shifted=shifted,
            )
            for load in LOADS
            for name, use, shifted in ARMS
        }
        for load in LOADS:
            for name, _, _ in ARMS:
                print(row(load, name, costs[load, name].result(), costs[load, STOCK].result()), flush=True)


def row(load: str, name: str, one: Cost, stock: Cost) -> str:
    """One line of the table in the README."""
    added, half = one.more_than(stock)
    more = "" if name == STOCK else f"{added:+.2f} ± {half:.2f}"
    return f"| {load} | {name} | {one.instructions:.1f} | {more} |"


if __name__ == "__main__":
    main()
