"""A slice for VMs at depth 2, and our scheduler."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dasec.bpf.scx import CGROUPS, Scheduler, options

from .machine import SLICE, Vm, made, wait_for


@pytest.fixture
def slices() -> Iterator[list[Path]]:
    """Groups above VMs, in the order in which they were made."""
    (CGROUPS / "cgroup.subtree_control").write_text("+cpu")
    slices = [made(SLICE)]
    yield slices
    for group in reversed(slices):
        group.rmdir()


@pytest.fixture
def vms(slices: list[Path]) -> Iterator[dict[str, Vm]]:
    begun: dict[str, Vm] = {}
    yield begun
    for vm in begun.values():
        vm.end()


@pytest.fixture
def scheduler(vms: dict[str, Vm]) -> Iterator[Scheduler]:
    with Scheduler(options(2)) as loaded:
        yield loaded
    wait_for("disabled")
