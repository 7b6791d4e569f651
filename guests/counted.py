"""A guest whose clock is the number of instructions it has executed: the same console in every run.

QEMU's `-icount` makes virtual time a function of what the guest did, so a busy host changes how
long a run takes and nothing else. The root is an initramfs with busybox and the jobs of
`guests/jobs`; the kernel command line names the jobs to run, one after another.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from guests.boot import EXIT_MARK, GuestRun, pack_initramfs, run_until_end
from guests.qemu import Qemu

SOURCES = Path(__file__).resolve().parent / "jobs"
MEMORY_MIB = 512
TOOLS = ("busybox", "cpio", "cc", "make")
"""QEMU is not among them: guests.qemu gets it."""

COMPLAINTS = (
    "WARNING|BUG:|KASAN:|KCSAN:|UBSAN|kmemleak: [0-9]+ new|INFO: |possible .* deadlock|Oops|Call Trace|hung"
)
"""What no job may leave in the kernel's log; INFO covers lockdep, RCU stalls and the task watchdog."""

REPORT_LINES = 80
"""What a complaint is followed by: the longest report of KASAN or KCSAN with its stacks."""

COUNTED = ("-accel", "tcg", "-icount", "shift=1,sleep=off", "-rtc", "base=2026-01-01,clock=vm")
"""Two virtual ns an instruction; a guest that sleeps skips to its next timer."""

PARALLEL = ("-accel", "tcg,thread=multi")
"""A host thread for each CPU, by the host's clock: what a detector of races needs, and nothing else."""

LEAK_AGE_S = 6
"""kmemleak reports what nothing has pointed to for 5 s: MSECS_MIN_AGE in mm/kmemleak.c."""

INIT = f"""#!/bin/busybox sh
busybox mkdir -p /proc /sys /dev /tmp
busybox mount -t proc proc /proc
busybox mount -t sysfs sys /sys
busybox mount -t devtmpfs dev /dev
busybox mount -t tmpfs tmpfs /tmp
busybox mount -t debugfs debugfs /sys/kernel/debug
busybox mount -t cgroup2 cgroup2 /sys/fs/cgroup
busybox echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
busybox dmesg -c | busybox grep -E -A {REPORT_LINES} '{COMPLAINTS}' | busybox sed 's/^/GUEST-LOG:/'
for job in $(busybox echo $jobs | busybox tr , ' '); do
    busybox echo "GUEST-JOB:$job"
    program=/programs/$job
    [ -x $program ] || program="/guest-jobs $job"
    $program
    busybox echo "GUEST-END:$?"
    busybox dmesg -c >/tmp/log
    busybox grep -E -A {REPORT_LINES} '{COMPLAINTS}' /tmp/log | busybox sed 's/^/GUEST-LOG:/'
    busybox echo "GUEST-TAINT:$(busybox cat /proc/sys/kernel/tainted)"
done
leaks=/sys/kernel/debug/kmemleak
if [ -e $leaks ]; then
    for scan in 1 2; do
        busybox sleep {LEAK_AGE_S}
        busybox echo scan >$leaks && busybox echo "GUEST-CHECKER:kmemleak scan $scan"
    done
    busybox sed 's/^/GUEST-LOG:leak: /' $leaks
fi
busybox sed 's/^/GUEST-CHECKER:kcsan /' /sys/kernel/debug/kcsan 2>/dev/null
busybox grep debug_locks /proc/lockdep_stats 2>/dev/null | busybox sed 's/^/GUEST-CHECKER:lockdep/'
busybox echo "{EXIT_MARK}0"
busybox reboot -f
"""


@dataclass(frozen=True, slots=True)
class Record:
    """One line of a job: a name and its values."""

    name: str
    values: Mapping[str, str]

    def __getitem__(self, key: str) -> str:
        return self.values[key]

    def number(self, key: str) -> int:
        """A value as a number."""
        return int(self.values[key])


@dataclass(frozen=True, slots=True)
class Job:
    """What a job said, how it ended (None: never), and what the kernel logged meanwhile."""

    text: str
    records: tuple[Record, ...]
    exit_status: int | None
    complaints: tuple[str, ...]
    tainted: int | None

    def named(self, name: str) -> tuple[Record, ...]:
        """Its records of this name; there must be some."""
        found = tuple(record for record in self.records if record.name == name)
        assert found, f"no line {name!r} among {self.records}"
        return found


def missing_tools() -> tuple[str, ...]:
    """The programs that a counted guest needs and this machine lacks."""
    return tuple(tool for tool in TOOLS if shutil.which(tool) is None)


def jobs_initramfs(scratch: Path, programs: Iterable[Path] = ()) -> Path:
    """Compiles the jobs and packs them, with further static programs that are jobs by their own name."""
    tree = scratch / "initramfs"
    (tree / "programs").mkdir(parents=True)
    for program in programs:
        shutil.copy(program, tree / "programs")
    build = scratch / "build"
    make = ["make", "-s", "-C", str(SOURCES), f"BUILD={build}"]
    done = subprocess.run(make, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"the jobs do not build:\n{done.stderr}"
    shutil.copy(build / "guest-jobs", tree / "guest-jobs")
    return pack_initramfs(tree, INIT)


def run_jobs(
    qemu: Qemu,
    kernel: Path,
    initramfs: Path,
    cpus: int,
    jobs: tuple[str, ...],
    timeout_s: int,
    clock: tuple[str, ...] = COUNTED,
    options: str = "norandmaps",
) -> GuestRun:
    """Boots, with instruction counting unless another clock is given, and runs the jobs."""
    command = qemu.command(
        *("-nodefaults", "-no-reboot", "-display", "none", "-serial", "stdio"),
        *("-cpu", "max,-rdrand,-rdseed", "-smp", str(cpus), "-m", str(MEMORY_MIB), *clock),
        *("-kernel", str(kernel), "-initrd", str(initramfs)),
        *("-append", f"console=ttyS0 quiet panic=-1 {options} jobs={','.join(jobs)}"),
    )
    return run_until_end(command, timeout_s)


def parse(console: str) -> dict[str, Job]:
    """The jobs that were begun, by name."""
    parts = re.split(r"^GUEST-JOB:(.+)$", console, flags=re.MULTILINE)
    return {name: _job(text) for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def _job(text: str) -> Job:
    log = re.findall(r"^GUEST-LOG:(.*)$", text, re.MULTILINE)
    return Job(text, tuple(_records(text)), _marked(text, "END"), tuple(log), _marked(text, "TAINT"))


def _marked(text: str, mark: str) -> int | None:
    found = re.search(rf"^GUEST-{mark}:(\d+)$", text, re.MULTILINE)
    return int(found.group(1)) if found else None


def _records(text: str) -> Iterator[Record]:
    for line in text.splitlines():
        if line.startswith("GUEST-"):
            continue
        name, *pairs = line.split() or [""]
        if pairs and all("=" in pair for pair in pairs):
            yield Record(name, dict(pair.split("=", 1) for pair in pairs))
