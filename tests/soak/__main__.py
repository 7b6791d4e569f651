"""`make soak`: the long form, as root."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

from . import report
from .soak import Findings, soak

TELL_EVERY_S = 15.0


class Progress:
    """A line now and then."""

    def __init__(self) -> None:
        self._said_s = time.monotonic()

    def __call__(self, found: Findings) -> None:
        if time.monotonic() - self._said_s < TELL_EVERY_S:
            return
        self._said_s = time.monotonic()
        now = found.samples[-1]
        done = f"{found.kills} kills, {found.reloads} reloads, {found.rotations} rotations"
        print(
            f"soak: {now.at_s / 60:.1f} of {found.seconds / 60:g} min: {done},"
            f" {now.memory_kib / 1024:.1f} MiB, {now.descriptors} descriptors",
            flush=True,
        )


def main() -> int:
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("build/soak"))
    told = parser.parse_args()
    if os.geteuid() != 0:
        print("soak: needs root: it starts the real daemon", file=sys.stderr)
        return 3
    shutil.rmtree(told.out, ignore_errors=True)
    told.out.mkdir(parents=True)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(1))  # everything is put back first
    found = soak(told.minutes * 60, told.out.absolute(), told.seed, Progress())
    report.write(found, told.out)
    print(json.dumps(report.summary(found), indent=2))
    return 1 if found.faults() else 0


if __name__ == "__main__":
    sys.exit(main())
