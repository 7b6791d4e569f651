"""What weights inside a group a workload are worth beside weights in one flat layout: a deterministic guest.

Cells LAYOUT:RATIO, each with the same arrivals for a seed. Prints the ratio of mean and p99 to nested:1.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import click

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[3]))

from guests.boot import pack_initramfs, run_until_end  # noqa: E402
from guests.qemu import counting_qemu  # noqa: E402
from guests.throw_away import debian_kernel  # noqa: E402

KERNEL = "linux-image-6.12-amd64"
CELLS = ("nested:1", "nested:7", "nested:20", "nested:60", "flat:1", "flat:7")
SEEDS = range(1, 4)
CPUS, SERVICES, HELPERS = 2, 4, 2
SECONDS = 5
REQUESTS_PER_S, BURSTS_PER_S = 100, 12
TIMEOUT_S = 7200

Pairs = list[tuple[tuple[str, str], tuple[str, str]]]


def console(speed: int) -> str:
    """What a guest says that runs all cells; `speed` is what counts as a microsecond's work."""
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch) / "tree"
        tree.mkdir()
        load = HERE.parents[2] / "load"
        subprocess.run(["make", "-s", "-C", load, f"BUILD={scratch}/build", "LDFLAGS=-static"], check=True)
        (Path(scratch) / "build/dasec-load").rename(tree / "dasec-load")
        initramfs = pack_initramfs(tree, (HERE / "guest.sh").read_text(encoding="utf-8"))
        cells = ",".join(f"{cell}:{seed}" for seed in SEEDS for cell in CELLS)
        settings = (
            f"cells={cells} speed={speed} seconds={SECONDS} services={SERVICES} helpers={HELPERS}"
            f" rate={REQUESTS_PER_S} background={BURSTS_PER_S}"
        )
        command = counting_qemu().command(
            *("-nodefaults", "-no-reboot", "-display", "none", "-serial", "stdio", "-m", "512"),
            *("-accel", "tcg,thread=single", "-cpu", "max,-rdrand,-rdseed", "-smp", str(CPUS)),
            *("-icount", "shift=1,sleep=off", "-rtc", "base=2026-01-01,clock=vm"),
            *("-kernel", str(debian_kernel(KERNEL).image), "-initrd", str(initramfs)),
            *("-append", f"console=ttyS0 quiet panic=-1 norandmaps {settings}"),
        )
        run = run_until_end(command, TIMEOUT_S)
    if run.exit_status != 0:
        raise SystemExit(f"the guest did not end well:\n{run.console[-2000:]}")
    return run.console


@click.command()
@click.argument("speed", type=click.IntRange(min=1), default=48)
def main(speed: int) -> None:
    """Print a line for each cell, from one guest.

    SPEED: iterations that count as a microsecond's work; 48 when left out.
    """
    mean, p99, used, background = (defaultdict[tuple[str, str], float](float) for _ in range(4))
    for line in console(speed).splitlines():
        if line.startswith("RESULT "):
            _, layout, ratio, seed, result = line.split(maxsplit=4)
            at, said = (f"{layout}:{ratio}", seed), json.loads(result)
            mean[at] += said["latency_ns"]["mean"] / SERVICES
            p99[at] += said["latency_ns"]["p99"] / SERVICES
            used[at] += said["cpu"]["total_s"] / said["cpu"]["window_s"] / CPUS
            background[at] += said["background"]["cpu_s"] / said["cpu"]["window_s"]
    for cell in CELLS:
        pairs = [((cell, str(seed)), (CELLS[0], str(seed))) for seed in SEEDS]

        def against_first(of: dict[tuple[str, str], float], pairs: Pairs = pairs) -> str:
            each = [of[here] / of[base] for here, base in pairs]
            return f"{statistics.geometric_mean(each):.2f} ({' '.join(f'{one:.2f}' for one in each)})"

        load = statistics.fmean([used[here] for here, _ in pairs])
        print(
            f"{cell:10} mean {against_first(mean)}  p99 {against_first(p99)}"
            f"  background {against_first(background)}  load {load:.2f}"
        )


if __name__ == "__main__":
    main()
