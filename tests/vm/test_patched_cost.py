"""Where nobody uses it, the patch costs next to nothing: instructions against a kernel without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from guests.cost import LOADS, UNUSED, cost
from guests.qemu import Qemu
from tests.vm.conftest import DEBUG_TIMEOUT_S, build_kernel

pytestmark = [pytest.mark.vm, pytest.mark.slow, pytest.mark.timeout(2 * DEBUG_TIMEOUT_S)]

MOST_PERCENT = 0.5


@pytest.mark.parametrize("load", LOADS)
def test_an_unused_patch_adds_at_most_half_a_percent_of_instructions(
    load: str, qemu: Qemu, initramfs: Path, patched_kernel: Path
) -> None:
    stock = cost(qemu, build_kernel("--stock"), initramfs, load, UNUSED)
    added, half = cost(qemu, patched_kernel, initramfs, load, UNUSED).more_than(stock)
    assert added + half <= MOST_PERCENT
