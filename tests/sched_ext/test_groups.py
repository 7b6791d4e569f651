"""Groups above VMs: a weight counts beside groups of the same parent, as under the kernel's own."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from dasec.bpf.scx import CGROUPS, Scheduler, options

from .machine import HOG, NEEDS_SCHED_EXT, SLICE, Vm, made, used_meanwhile, wait_for

pytestmark = NEEDS_SCHED_EXT

OTHER = CGROUPS / "other.slice"
NOW_AND_THEN = """
import time
while True:
    ends = time.thread_time() + 0.0005
    while time.thread_time() < ends: pass
    time.sleep(0.1)
"""


def parts(vms: dict[str, Vm]) -> dict[str, float]:
    """Of all that they have used, once it has settled."""
    time.sleep(1)
    used = used_meanwhile(vms)
    return {name: used_s / sum(used.values()) for name, used_s in used.items()}


def test_one_vm_of_a_group_has_as_much_as_three_of_another(
    scheduler: Scheduler, vms: dict[str, Vm], slices: list[Path]
) -> None:
    slices.append(made(OTHER))
    vms["alone"] = Vm("alone", above=OTHER)
    vms["alone"].run(HOG, {0})
    for name in ("one", "two", "three"):
        vms[name] = Vm(name)
        vms[name].run(HOG, {0})
    had = parts(vms)
    assert had["alone"] == pytest.approx(1 / 2, abs=0.06)
    assert [had[name] for name in ("one", "two", "three")] == pytest.approx([1 / 6] * 3, abs=0.04)


def test_the_weight_of_a_group_counts_for_the_vm_in_it_and_not_the_vms_own(
    scheduler: Scheduler, vms: dict[str, Vm], slices: list[Path]
) -> None:
    slices.append(made(OTHER, weight=300))
    vms["heavy above"] = Vm("heavy", weight=10, above=OTHER)
    vms["light above"] = Vm("light", weight=1000)
    for vm in vms.values():
        vm.run(HOG, {0})
    assert parts(vms)["heavy above"] == pytest.approx(3 / 4, abs=0.06)


def test_programs_in_a_group_above_the_depth_of_vms_have_that_groups_part(
    scheduler: Scheduler, vms: dict[str, Vm]
) -> None:
    vms["flat"] = Vm("flat", weight=200, above=CGROUPS)
    vms["flat"].run(HOG, {0}, times=2)
    for name in ("one", "two"):
        vms[name] = Vm(name)
        vms[name].run(HOG, {0})
    assert parts(vms)["flat"] == pytest.approx(2 / 3, abs=0.06)


def test_services_that_wake_up_now_and_then_take_no_weight_from_the_one_beside_them_that_computes(
    scheduler: Scheduler, vms: dict[str, Vm], slices: list[Path]
) -> None:
    slices.append(made(OTHER))
    vms["batch"] = Vm("batch", above=OTHER)
    vms["batch"].run(HOG, {0})
    for number in range(6):
        vms[f"service {number}"] = Vm(f"service-{number}", above=OTHER)
        vms[f"service {number}"].run(NOW_AND_THEN, {0})
    vms["vm"] = Vm("vm")
    vms["vm"].run(HOG, {0})
    had = parts(vms)
    assert had["batch"] / (had["batch"] + had["vm"]) == pytest.approx(1 / 2, abs=0.06)


def test_a_weight_counts_at_each_depth(vms: dict[str, Vm], slices: list[Path]) -> None:
    """As of pods: kubepods.slice, the class of a pod, the pod."""
    slices += [made(SLICE / "burstable", weight=100), made(SLICE / "guaranteed", weight=300), made(OTHER)]
    vms["burstable"] = Vm("pod", above=SLICE / "burstable")
    vms["one"], vms["two"] = (
        Vm(name, weight, SLICE / "guaranteed") for name, weight in (("1", 100), ("2", 200))
    )
    slices.append(made(OTHER / "deeper"))
    vms["other"] = Vm("other", above=OTHER / "deeper")
    with Scheduler(options(3)):
        for vm in vms.values():
            vm.run(HOG, {0})
        had = parts(vms)
    wait_for("disabled")
    due = {"burstable": 1 / 8, "one": 1 / 8, "two": 2 / 8, "other": 1 / 2}
    assert had == pytest.approx(due, abs=0.04)
