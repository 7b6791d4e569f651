"""What stops of domains are compared by, and who collects a QEMU that ended."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from dasec.lab.kit.arms import CONTROL, NONE
from experiments.studies.lifecycle.command import report
from experiments.studies.lifecycle.measure import Life

ARMS = (NONE, CONTROL, "dasec")

ORPHAN = """
import os, sys
from experiments.studies.lifecycle.collector import collect_orphans
collector = os.getpid()
collect_orphans()
heard, told = os.pipe()
if os.fork() == 0:  # QEMU's way: whoever started it ends before it does
    if os.fork() == 0:
        while os.getppid() != collector:
            pass
        os.write(told, b"collected")
    os._exit(0)
os.wait()
os.close(told)
print(os.read(heard, 100).decode(), flush=True)
os._exit(7)
"""


def lives(destroy_s: float) -> list[Life]:
    """Twelve repetitions; with the daemon a destroy takes that long, without it about 0.2 s."""
    return [
        Life(arm, number, 0.5, taken + number % 3 * 0.004, 0.01, 0.25, 0.03, 0.001, 0)
        for number, (arm, taken) in product(range(12), zip(ARMS, (0.2, 0.201, destroy_s), strict=True))
    ]


@pytest.mark.parametrize(("destroy_s", "said"), [(0.201, "no effect"), (0.4, "harm"), (0.1, "gain")])
def test_a_stop_that_waits_for_one_look_more_shows(destroy_s: float, said: str) -> None:
    line = next(one for one in report(lives(destroy_s), ARMS) if one.startswith("| destroy | `dasec`"))
    assert line.endswith(f"| {said} |")


def test_what_takes_less_than_a_millisecond_has_a_ratio_as_well() -> None:
    times = dict(zip(ARMS, (0.0004, 0.0004, 0.0008), strict=True))
    short = [replace(one, undefine_s=times[one.arm]) for one in lives(0.2)]
    line = next(one for one in report(short, ARMS) if one.startswith("| undefine | `dasec`"))
    assert line == "| undefine | `dasec` | 0.8, 0.8–0.8 | 2.000 [2.000, 2.000] | harm |"


def test_an_orphan_is_the_collectors_and_the_exit_status_the_childs(repository: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ORPHAN],
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.stdout, done.returncode) == ("collected\n", 7), done.stderr
