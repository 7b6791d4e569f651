"""Which kernels, images and guests take minutes: errands of tests/ahead.py."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from experiments.places.counted.cpus import Cpus
from experiments.places.counted.machine import Run, Task, measure
from experiments.results.kept_cells import Seen
from experiments.results.store import RUNS
from experiments.studies.bandwidth.guest import machine_of
from experiments.studies.sched_ext import caches, published, shares
from experiments.studies.sched_ext.fairness import Contest
from experiments.studies.sched_ext.scripts import SEEN
from experiments.studies.testbed.quick import quick
from guests.boot import GuestRun
from guests.built import REPOSITORY, guest_image, patched_image, sched_ext_image
from guests.counted import jobs_initramfs, run_jobs
from guests.qemu import counting_qemu
from guests.throw_away import CgroupLayout, GuestKernel, debian_kernel, newer_kernel, run_in_guest

JOBS = (
    *("granularity", "shares", "late", "wakes", "states", "lifecycle", "permissions", "refusals"),
    *("fuzz", "stress"),
)
SELFTESTS = ("interface_test", "behaviour_test")

OVERRUN = "work:threads=3:quota=30000:period=10000:seconds=2"
LEAK = "work:threads=3:quota=100000:period=100000:writes=8:seconds=0.7"
"""Three threads whose quota suffices; three that compute while their limit of one CPU is written again."""

SHORT = (f"{OVERRUN}:on=0", f"{OVERRUN}:on=0:burst=12000", f"{LEAK}:on=0")
"""Of the study on bandwidth so much as takes seconds and no patch."""

PATCHED = "patched"
SCHED_EXT = "sched_ext"
NEWER = "newer"
"""Among the names of Debian's kernels: those that we build, and the newest of Debian 13's backports."""

OURS = {PATCHED: patched_image, SCHED_EXT: sched_ext_image}


def kernel_named(name: str) -> GuestKernel:
    """Built, or got, or from the cache."""
    if name == NEWER:
        return newer_kernel()
    return GuestKernel(name, OURS[name](), ()) if name in OURS else debian_kernel(name)


GUEST_TIMEOUT_S = 900
"""What ends a guest that hangs; no assertion is about it. Alone a guest takes 150 to 250 s; on a host whose
own host is short of CPUs more than 420 s were seen."""

PYTEST = (
    f"cd {REPOSITORY} && DASEC_CI=1 DASEC_GUEST=1 PYTHONDONTWRITEBYTECODE=1"
    " .venv/bin/python -m pytest -q --color=no --timeout 400"
    " -p no:cacheprovider -p no:randomly -p no:hypothesispytest"
)


@dataclass(frozen=True, slots=True)
class GuestImage:
    """An image of vm-images, built."""

    name: str

    def __call__(self) -> Path:
        return guest_image(self.name)


@dataclass(frozen=True, slots=True)
class JobsRun:
    """Every job and the series' own selftests, in one guest with so many CPUs."""

    cpus: int

    def __call__(self) -> GuestRun:
        kernel = patched_image()
        with tempfile.TemporaryDirectory() as scratch:
            initramfs = packed_jobs(kernel, Path(scratch))
            return run_jobs(counting_qemu(), kernel, initramfs, self.cpus, JOBS + SELFTESTS, GUEST_TIMEOUT_S)


@dataclass(frozen=True, slots=True)
class ShortFigures:
    """What is lost and given twice on Debian's kernel, and what a burst makes of it."""

    def __call__(self) -> tuple[Run, ...]:
        with tempfile.TemporaryDirectory() as scratch:
            machine = machine_of("6.12-debian", 3, Path(scratch))
            task = Task("short figures", ",".join(SHORT), len(SHORT))
            return tuple(measure(machine, task, lambda: None).runs)


@dataclass(frozen=True, slots=True)
class OneContest:
    """For CPU time, between VMs on our sched_ext scheduler: one that every change of it is tried on."""

    name: str
    seconds: float

    def __call__(self) -> Contest:
        cpus = Cpus(shares.CPUS, shares.MIPS, shares.TURN)
        (number,) = (-1 - at for at, one in enumerate(SEEN) if one.name == self.name)
        with tempfile.TemporaryDirectory() as scratch:
            machine = shares.machine(Path(scratch), cpus)
            task = shares.task("dasec", self.seconds, cpus, (number,))
            (run,) = measure(machine, task, lambda: None).runs
        return shares.contest(run)


@dataclass(frozen=True, slots=True)
class TwoCaches:
    """Who computes on CPUs of two caches, on our scheduler and others."""

    seconds: float

    def __call__(self) -> tuple[Run, ...]:
        with tempfile.TemporaryDirectory() as scratch:
            machine = caches.machine(Path(scratch))
            return tuple(measure(machine, caches.task(self.seconds), lambda: None).runs)


@dataclass(frozen=True, slots=True)
class ShortCell:
    """The one cell of a study's file on our scheduler, in short: its arms, and what was measured."""

    file: str
    kernel: str
    lead_s: float

    def __call__(self) -> Mapping[str, Seen]:
        kernel_named(self.kernel)
        short = {"policies": ["scx"], "seconds": 2.0, "lead_s": self.lead_s, "warmup_s": 0.5}
        told = [part for key, value in short.items() for part in ("--set", f"{key}={json.dumps(value)}")]
        file = f"experiments/studies/{self.file}"
        with tempfile.TemporaryDirectory() as scratch:
            command = [sys.executable, "-m", "experiments", "run", file, *told, "--guests", "1", "--anyway"]
            subprocess.run([*command, "--out", scratch], cwd=REPOSITORY, check=True, capture_output=True)
            ((_, runs),) = replace(published.KEPT, results=Path(scratch)).cells()
        return runs


@dataclass(frozen=True, slots=True)
class TestsRun:
    """Tests of this repository, in a guest with this kernel and cgroup layout. `told`: variables of the
    environment, "A=1 B=2"."""

    __test__ = False

    kernel: str
    layout: CgroupLayout
    tests: str
    told: str = ""

    def __call__(self) -> GuestRun:
        kernel = kernel_named(self.kernel)
        with tempfile.TemporaryDirectory() as scratch:
            told = f"export {self.told}; " if self.told else ""
            command = f"{told}{PYTEST} {self.tests}"
            return run_in_guest(kernel, self.layout, command, Path(scratch), GUEST_TIMEOUT_S)


@dataclass(frozen=True, slots=True)
class QuickTestbed:
    """What `make testbed-quick` does, one guest at a time: validation.json and runs.jsonl. It refuses a
    machine that is not as it should be, and two A/Bs that differ."""

    def __call__(self) -> tuple[bytes, bytes]:
        patched_image()
        with tempfile.TemporaryDirectory() as scratch:
            out = Path(scratch) / "out"
            quick(1, out)
            return (out / "machine/validation.json").read_bytes(), (out / "ab" / RUNS).read_bytes()


def packed_jobs(kernel: Path, scratch: Path) -> Path:
    """Our jobs and the series' own selftests, which the build leaves beside the kernel."""
    return jobs_initramfs(scratch, [kernel.parent / "selftests" / name for name in SELFTESTS])
