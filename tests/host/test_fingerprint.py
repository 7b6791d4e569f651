"""The fingerprint sees everything that DASEC may change."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from dasec.knobs import knob
from dasec.knobs.knob import KnobRef
from dasec.knobs.masks import AFFINITY
from dasec.knobs.slices import SLICE
from dasec.linux import bandwidth, cgroupfs, procfs
from dasec.model import VcpuId
from dasec.safety.fingerprint import differences, fingerprint

pytestmark = pytest.mark.host


@pytest.fixture
def patient() -> Iterator[VcpuId]:
    process = subprocess.Popen(["sleep", "600"])
    yield VcpuId(process.pid, process.pid, procfs.read_stat(process.pid, process.pid).start_ticks)
    process.kill()
    process.wait()


def of_threads(found: tuple[str, ...]) -> list[str]:
    """Without the lines about groups: any service of this machine may make one meanwhile."""
    return [line for line in found if line.startswith("thread ")]


def test_it_sees_slice_mask_and_nice_of_a_thread(patient: VcpuId) -> None:
    before = fingerprint([patient.pid])
    knob.write(KnobRef(patient, SLICE), 5_000_000)
    knob.write(KnobRef(patient, AFFINITY), (0,))
    os.setpriority(os.PRIO_PROCESS, patient.tid, 15)
    found = of_threads(differences(before, fingerprint([patient.pid])))
    assert [line.split(": ")[1] for line in found] == ["slice_ns", "nice", "affinity"]


def test_it_sees_a_new_group_its_weight_its_limit_and_who_moved_there(patient: VcpuId) -> None:
    hierarchy = cgroupfs.find_hierarchy()
    group = Path(hierarchy.directory(f"/fingerprint-{os.getpid()}"))
    before = fingerprint([patient.pid])
    group.mkdir()
    try:
        made = fingerprint([patient.pid])
        assert f"group {group}: is new" in differences(before, made)
        hierarchy.move(patient.tid, f"/{group.name}")
        cgroupfs.write_weight(hierarchy.weight_file(f"/{group.name}"), 2000)
        quota = bandwidth.quota_file(hierarchy, f"/{group.name}")
        bandwidth.write_quota(quota, "70000 100000")
        bandwidth.write_burst(bandwidth.burst_file(quota), 9000)
        found = "\n".join(differences(made, fingerprint([patient.pid])))
        assert f"is /{group.name}" in found
        assert f"group {group}: weight was" in found
        assert f"group {group}: quota was max 100000, is 70000 100000" in found
        assert f"group {group}: burst was 0, is 9000" in found
    finally:
        hierarchy.move(patient.tid, str(before.threads[patient]["cgroup"]))
        group.rmdir()
    assert not of_threads(differences(before, fingerprint([patient.pid])))


def test_threads_that_come_or_go_are_no_difference(patient: VcpuId) -> None:
    before = fingerprint([patient.pid])
    other = subprocess.Popen(["sleep", "600"])
    try:
        for pids in ([patient.pid, other.pid], [other.pid]):
            assert not of_threads(differences(before, fingerprint(pids)))
    finally:
        other.kill()
        other.wait()


def test_it_covers_every_process_but_the_kernels_own() -> None:
    pids = {vcpu.pid for vcpu in fingerprint().threads}
    assert {1, os.getpid()} <= pids
    assert 2 not in pids
