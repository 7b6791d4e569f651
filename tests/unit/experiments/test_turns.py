"""The library that makes QEMU's CPUs equal, preloaded into programs that are no QEMU it knows."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from experiments.places.counted.cpus import Cpus
from experiments.places.counted.machine import build_turns
from guests.qemu import QemuMissingError, counting_qemu

PAUSE = """__attribute__((naked)) void helper_pause(void) {
    __asm__(".byte 0x53, 0x48, 0x89, 0xfb, 0x83, 0xa7, 0xb0, 0, 0, 0, 0xf7, 0x48, 0x81, 0xa7, 0x88, 0, 0, 0,"
            "0xff, 0xff, 0xfe, 0xff, 0x5b, 0xc3");
}
"""
"""As QEMU 10.0 has it."""

OTHER_BUDGET = "int icount_percpu_budget(int cpus) { return cpus * 3; }\n"
BUDGET = """__attribute__((naked)) int icount_percpu_budget(int cpus) {
    __asm__(".byte 0x55, 0x53, 0x89, 0xfb, 0x48, 0x83, 0xec, 8, 0x83, 0x3d; ret");
}
"""
MAIN = 'extern int puts(const char *);\nint main(void) { puts("started"); return 0; }\n'


def started(tmp_path: Path, source: str, cpus: Cpus) -> subprocess.CompletedProcess[str]:
    """A program with these functions, with the library in it."""
    program = tmp_path / "program"
    (tmp_path / "program.c").write_text(source + MAIN, encoding="ascii")
    subprocess.run(["cc", "-w", "-rdynamic", "-o", program, tmp_path / "program.c"], check=True)
    preload = {"LD_PRELOAD": str(build_turns(tmp_path, cpus))}
    return subprocess.run([program], env=preload, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("source", "cpus", "what"),
    [
        pytest.param("", Cpus(2), "helper_pause", id="no QEMU at all"),
        pytest.param(PAUSE, Cpus(2), "icount_percpu_budget", id="no budget"),
        pytest.param(PAUSE + OTHER_BUDGET, Cpus(2), "icount_percpu_budget", id="another budget"),
        pytest.param(PAUSE + BUDGET, Cpus(2, 500), "icount_get", id="no clock"),
    ],
)
def test_a_qemu_that_is_not_known_ends_at_once_with_one_line(
    tmp_path: Path, source: str, cpus: Cpus, what: str
) -> None:
    done = started(tmp_path, source, cpus)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == f"turns: {what}: this works with QEMU 10.0 for x86-64 only\n"


def test_the_clock_is_left_alone_where_no_speed_is_wanted(tmp_path: Path) -> None:
    assert started(tmp_path, PAUSE + BUDGET, Cpus(2)).stdout == "started\n"


@pytest.mark.vm
def test_the_qemu_of_the_counted_guests_is_known(tmp_path: Path) -> None:
    try:
        qemu = counting_qemu()
    except QemuMissingError as error:
        pytest.fail(str(error))
    preload = f"LD_PRELOAD={build_turns(tmp_path, Cpus(16, 500, 5000))}"
    command = ["env", preload, *qemu.command("--version")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
