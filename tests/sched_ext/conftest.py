"""A slice for VMs at depth 2, and our scheduler."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dasec.bpf.scx import CGROUPS, Scheduler, options

from .machine import SLICE, Vm, wait_for


@pytest.fixture
def vms() -> Iterator[dict[str, Vm]]:
    (CGROUPS / "cgroup.subtree_control").write_text("+cpu")
    SLICE.mkdir()
    (SLICE / "cgroup.subtree_control").write_text("+cpu")
    made: dict[str, Vm] = {}
    yield made
    for vm in made.values():
        vm.end()
    SLICE.rmdir()


@pytest.fixture
def scheduler(vms: dict[str, Vm]) -> Iterator[Scheduler]:
    with Scheduler(options(2)) as loaded:
        yield loaded
    wait_for("disabled")
