"""One cell in a QEMU guest of our patched kernel, on five CPUs of equal and constant speed.

QEMU counts instructions, turns.so makes the turns of its CPUs equal, and the guest's idle loop
burns its turns: virtual time is a function of what the guest does, however busy the host is.
"""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.vm.boot import EXIT_MARK
from tests.vm.qemu import Qemu

from .cells import CORES, Cell
from .inside import RUN

HERE = Path(__file__).resolve().parent
TIMEOUT_S = 2 * 3600
"""A cell takes 60 to 150 s of one of the host's cores; a busy host gives it a small part of one."""

MEMORY_MIB = 768
NICE = 10
KERNEL = (
    *("console=ttyS0", "quiet", "panic=-1", "norandmaps", "nohpet", "tsc=reliable", "cpu_init_udelay=0"),
    *("nohz=off", "skew_tick=1", "idle=poll", f"isolcpus={CORES}"),
)
"""idle=poll with turns.so burns idle turns; ticks come on every CPU and one after another; the last CPU is
out of the balancing domain, so that what measures does not disturb what is measured."""

Run = dict[str, object]


class GuestFailedError(Exception):
    """A guest that did not bring all of its runs; the text is its last words."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What every guest is made of."""

    qemu: Qemu
    kernel: Path
    archive: Path
    turns: Path

    def command(self, cell: Cell) -> list[str]:
        """The command line; LD_PRELOAD is set for QEMU alone."""
        return [
            *("nice", "-n", str(NICE), "env", f"LD_PRELOAD={self.turns}"),
            *self.qemu.command("-nodefaults", "-no-reboot", "-display", "none", "-serial", "stdio"),
            *("-accel", "tcg,thread=single", "-cpu", "max,-rdrand,-rdseed"),
            *("-smp", str(CORES + 1), "-m", str(MEMORY_MIB)),
            *("-icount", "shift=0,sleep=off", "-rtc", "base=2026-01-01,clock=vm"),
            *("-kernel", str(self.kernel), "-initrd", str(self.archive)),
            *("-append", " ".join((*KERNEL, f"cell={cell.name}"))),
        ]


def build_turns(scratch: Path) -> Path:
    """The library that QEMU is preloaded with."""
    target = scratch / "turns.so"
    command = ["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", str(target)]
    subprocess.run([*command, str(HERE / "turns.c"), "-ldl"], check=True)
    return target


def measure(machine: Machine, cell: Cell, on_run: Callable[[], None]) -> list[Run]:
    """All runs of a cell; told of each one. Raises GuestFailedError."""
    process = subprocess.Popen(
        machine.command(cell),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    alarm = threading.Timer(TIMEOUT_S, process.kill)
    alarm.start()
    lines: list[str] = []
    runs: list[Run] = []
    try:
        for line in _lines(process):
            if line.startswith(RUN):
                runs.append(json.loads(line.removeprefix(RUN)))
                on_run()
            else:
                lines.append(line)
    finally:
        alarm.cancel()
        process.kill()
        process.wait()
    if f"{EXIT_MARK}0" not in lines:
        raise GuestFailedError(f"cell {cell.name}: " + " | ".join(lines[-6:]))
    return runs


def _lines(process: subprocess.Popen[str]) -> Iterator[str]:
    assert process.stdout is not None
    for line in process.stdout:
        yield line.rstrip("\r\n")
