"""A QEMU guest whose CPUs have equal and constant speed, and what it says about its runs.

QEMU counts instructions, turns.so makes the turns of its CPUs equal, and the guest's idle loop
burns its turns: virtual time is a function of what the guest does, however busy the host is.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from guests.boot import EXIT_MARK, WITH_US
from guests.built import HostCannotError
from guests.qemu import Qemu, counting_qemu

from .cpus import Cpus
from .image import TASK, Inside, pack
from .inside import RECORD, RUN

HERE = Path(__file__).resolve().parent
TOOLS = ("busybox", "cpio", "cc", "make", "ldd", "setpriv", "strip")
TIMEOUT_S = 2 * 3600
"""A guest takes minutes of one of the host's cores; a busy host gives it a small part of one."""

MEMORY_MIB, MEMORY_MIB_A_CPU = 768, 24
"""The larger one: kernel, Python and services need the first, 16 services of 16 threads on 80 CPUs less than
the second."""

NICE = 10
KERNEL = (
    *("console=ttyS0", "quiet", "panic=-1", "norandmaps", "nohpet", "tsc=reliable", "cpu_init_udelay=0"),
    *("nohz=off", "skew_tick=1", "idle=poll", "cryptomgr.notests"),
)
"""idle=poll with turns.so burns idle turns; ticks come on every CPU and one after another. Without
cryptomgr.notests Debian's kernel tests its ciphers in a thread of its own for the first 5 s of 500 MIPS:
speeds differed by 55 % (experiments/studies/testbed)."""

Run = dict[str, object]


class GuestFailedError(Exception):
    """A guest that did not bring all of its runs; the text is its last words."""


@dataclass(frozen=True, slots=True)
class Task:
    """What one guest does: its name for people, the word that the module inside is given, how many runs."""

    name: str
    word: str
    runs: int


@dataclass(frozen=True, slots=True)
class Machine:
    """What every guest is made of."""

    qemu: Qemu
    kernel: Path
    archive: Path
    turns: Path
    cpus: Cpus
    isolated: bool = True
    """The CPUs that no service uses; a kernel that isolates one takes no sched_ext scheduler."""
    memory_wanted_mib: int = MEMORY_MIB

    @property
    def memory_mib(self) -> int:
        """Of the guest."""
        return max(self.memory_wanted_mib, MEMORY_MIB_A_CPU * self.cpus.total)

    def command(self, task: Task) -> list[str]:
        """The command line. LD_PRELOAD is set for QEMU alone, which does not outlive whoever started it.
        -seed is for the random numbers that it hands the kernel at boot (SETUP_RNG_SEED). The last CPUs are
        out of the balancing domain, so that what measures does not disturb what is measured."""
        isolated = (f"isolcpus={','.join(map(str, self.cpus.apart))}",) if self.isolated else ()
        words = (*KERNEL, *isolated, f"{TASK}={task.word}")
        return [
            *(*WITH_US, "nice", "-n", str(NICE), "env", f"LD_PRELOAD={self.turns}"),
            *self.qemu.command("-nodefaults", "-no-reboot", "-display", "none", "-serial", "stdio"),
            *("-accel", "tcg,thread=single", "-cpu", "max,-rdrand,-rdseed", "-seed", "1"),
            *(
                "-smp",
                ",".join(filter(None, (str(self.cpus.total), self.cpus.topology))),
                "-m",
                str(self.memory_mib),
            ),
            *("-icount", "shift=0,sleep=off", "-rtc", "base=2026-01-01,clock=vm"),
            *("-kernel", str(self.kernel), "-initrd", str(self.archive), "-append", " ".join(words)),
        ]


def make_machine(
    scratch: Path, kernel: Callable[[], Path], inside: Inside, cpus: Cpus, *, isolated: bool = True
) -> Machine:
    """Everything that the guests need, built or found. Raises HostCannotError, QemuMissingError."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        raise HostCannotError(f"counted guest: {', '.join(missing)}: not found: install what provides it")
    scratch.mkdir(parents=True, exist_ok=True)
    archive, turns = pack(scratch, inside), build_turns(scratch, cpus)
    return Machine(counting_qemu(), kernel(), archive, turns, cpus, isolated)


def build_turns(scratch: Path, cpus: Cpus) -> Path:
    """The library that QEMU is preloaded with."""
    target = (scratch / f"turns-{cpus.turn}-{cpus.per_us}.so").resolve()
    command = ["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", str(target)]
    values = (f"-DTURN={cpus.turn}", f"-DPER_US={cpus.per_us}")
    subprocess.run([*command, *values, str(HERE / "turns.c"), "-ldl"], check=True)
    return target


@dataclass(frozen=True, slots=True)
class Told:
    """What a guest said: its runs, and the daemon's records, as words, by the names of their files."""

    runs: list[Run] = field(default_factory=list)
    records: dict[str, str] = field(default_factory=dict)


def _nobody(process: subprocess.Popen[str]) -> None:
    """Nobody else ends it."""


def measure(
    machine: Machine,
    task: Task,
    on_run: Callable[[], None],
    on_start: Callable[[subprocess.Popen[str]], None] = _nobody,
) -> Told:
    """All runs of a guest; told of its process, and of each run. Raises GuestFailedError."""
    process = subprocess.Popen(
        machine.command(task),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    on_start(process)
    alarm = threading.Timer(TIMEOUT_S, process.kill)
    alarm.start()
    lines: list[str] = []
    told = Told()
    try:
        for line in _lines(process):
            if line.startswith(RUN):
                told.runs.append(json.loads(line.removeprefix(RUN)))
                on_run()
            elif line.startswith(RECORD):
                name, _, word = line.removeprefix(RECORD).partition(" ")
                told.records[name] = word
            else:
                lines.append(line)
    finally:
        alarm.cancel()
        process.kill()
        process.wait()
    if f"{EXIT_MARK}0" not in lines or len(told.runs) != task.runs:
        raise GuestFailedError(f"{task.name}: " + " | ".join(lines[-6:]))
    return told


def _lines(process: subprocess.Popen[str]) -> Iterator[str]:
    assert process.stdout is not None
    for line in process.stdout:
        yield line.rstrip("\r\n")
