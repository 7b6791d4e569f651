"""A slice for VMs at depth 2."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dasec.bpf.scx import CGROUPS

from .machine import SLICE, Vm


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
