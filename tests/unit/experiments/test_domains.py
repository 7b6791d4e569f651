"""Virtual machines of counted guests as libvirt's domains: the daemon's own discovery finds them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dasec.lab.kit.arms import NONE
from dasec.lab.kit.bench import RunPlan
from dasec.lab.kit.layout import GroupLayout
from dasec.lab.kit.process import name_of, thread_ids
from dasec.lab.kit.scenario import SERVICE, Scenario, Tenant, Timing
from dasec.lab.kit.tree import TOP_NAME, Tree
from dasec.workloads.libvirt.libvirt import LibvirtWorkloads, Rule
from experiments.places.counted.domains import homes
from guests.waiting import wait_for
from tests.host.scopes import LIKE_QEMU, VCPUS

UUID = "4dea22b3-1d52-d8f3-2516-000000000001"
DOMAIN = Tenant("kvm-0", SERVICE, VCPUS, vcpu_names=("CPU *",), has_emulator=True, is_domain=True)
OTHER = replace(DOMAIN, name="other-0", is_domain=False)


def plan(*tenants: Tenant) -> RunPlan:
    return RunPlan(Scenario(2, tenants), GroupLayout.VM, Timing(1.0), (NONE,), 1, 1)


@pytest.fixture
def qemu() -> Iterator[int]:
    process = subprocess.Popen([sys.executable, "-S", "-c", LIKE_QEMU, "-uuid", UUID])
    wait_for(lambda: len(vcpus_of(process.pid)) == VCPUS)
    yield process.pid
    process.kill()
    process.wait()


def vcpus_of(pid: int) -> tuple[tuple[int, int], ...]:
    return tuple(one for one in sorted(thread_ids([pid])) if name_of(*one).startswith("CPU "))


def test_a_domain_is_found_by_its_file_as_long_as_it_has_a_home(qemu: int, tmp_path: Path) -> None:
    tree, directory = Tree(1, tmp_path / TOP_NAME), tmp_path / "libvirt"
    found = LibvirtWorkloads([Rule("kvm-0", "kvm-0")], directory=str(directory))
    with homes(plan(DOMAIN, OTHER), tree, NONE, str(directory)) as (domain, other):
        domain.settle([])
        assert not directory.exists(), "it has not come up"
        domain.settle([qemu])
        (entry,) = found.discover(0).roster
        assert entry.threads == vcpus_of(qemu)
        (file,) = directory.iterdir()
        written = file.stat().st_ino
        domain.settle([qemu])
        assert file.stat().st_ino == written, "nothing is new"
        other.settle([qemu])
        assert list(directory.iterdir()) == [file]
    assert list(directory.iterdir()) == []


def test_its_other_threads_are_in_the_emulators_group(qemu: int, tmp_path: Path) -> None:
    tree = Tree(1, tmp_path / TOP_NAME)
    with homes(plan(DOMAIN), tree, NONE, str(tmp_path / "libvirt")) as (domain,):
        domain.settle([qemu])
    placed = {path.parent.name for path in tree.directory("machine/kvm-0").rglob("tasks")}
    assert placed == {"emulator", *(f"vcpu{number}" for number in range(VCPUS))}
