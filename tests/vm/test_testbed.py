"""The machine of many CPUs: of equal speed, and the same twice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dasec.lab.kit.arms import CONTROL, NONE
from guests.qemu import Qemu
from tests.ahead import Ahead
from tests.vm.errands import QuickTestbed

pytestmark = pytest.mark.vm

QUICK = QuickTestbed()


@pytest.mark.ahead.with_args(QUICK)
def test_four_cpus_are_equal_and_an_experiment_on_them_gives_the_same_twice(
    qemu: Qemu, patched_kernel: Path, ahead: Ahead
) -> None:
    machine, runs = ahead.result(QUICK)
    assert qemu
    assert patched_kernel.exists()
    (validated,) = json.loads(machine)["machines"]
    assert (validated["cpus"], validated["repeated"], validated["failures"]) == (4, True, [])
    (block,) = map(json.loads, runs.splitlines())
    assert {run["arm"] for run in block["runs"]} == {NONE, CONTROL, "critical"}
    assert all(tenant["latencies"]["count"] > 0 for run in block["runs"] for tenant in run["tenants"])
