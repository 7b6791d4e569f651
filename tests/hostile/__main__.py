"""`make hostile`: the long form, as root."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from .world import run


def main() -> int:
    parser = argparse.ArgumentParser(prog="make hostile", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    told = parser.parse_args()
    if os.geteuid() != 0:
        print("hostile: needs root: it starts the real daemon", file=sys.stderr)
        return 3
    with tempfile.TemporaryDirectory() as place:
        found = run(told.minutes * 60, Path(place), told.seed)
    print(json.dumps(asdict(found), indent=2))
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
