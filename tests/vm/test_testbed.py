"""The machine of many CPUs: of equal speed, and the same twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.testbed.kernels import PATCHED
from experiments.testbed.machine import cpus_for
from experiments.testbed.quick import quick
from experiments.testbed.validate import probing_machine, validate
from tests.vm.errands import PatchedKernel
from tests.vm.qemu import Qemu

pytestmark = [pytest.mark.vm, pytest.mark.timeout(1800)]  # the first test builds the kernel


@pytest.mark.ahead.with_args(PatchedKernel())
def test_four_cpus_are_equal_and_repeat(tmp_path: Path, qemu: Qemu, patched_kernel: Path) -> None:
    found = validate(probing_machine(tmp_path, PATCHED, cpus_for(4)), guests=2)
    assert patched_kernel.exists()
    assert found.failures == ()


@pytest.mark.slow
def test_an_experiment_gives_the_same_twice(tmp_path: Path, qemu: Qemu, patched_kernel: Path) -> None:
    assert patched_kernel.exists()
    quick(2, tmp_path)
