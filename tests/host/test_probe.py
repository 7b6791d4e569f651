"""Probing this kernel."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dasec.hosts.open import probe
from dasec.hosts.probe.dummy import spinner
from dasec.hosts.probe.reweight import try_duel
from dasec.linux import cgroupfs, procfs, schedattr
from guests.waiting import wait_for

pytestmark = pytest.mark.host


def test_slices_work_where_the_kernel_has_them_and_the_other_knobs_everywhere() -> None:
    eevdf = "se.slice" in Path("/proc/self/sched").read_text(encoding="ascii")
    found = probe(duel=False)
    assert (found.weight, found.rescheduling_latency, found.affinity) == (True, eevdf, True)
    assert ("default is" if eevdf else "ignores") in found.rescheduling_latency_note


def test_probing_leaves_nothing_behind() -> None:
    mount = Path(cgroupfs.find_hierarchy().mount)
    mask = os.sched_getaffinity(0)
    probe()
    assert [path.name for path in mount.glob(f"dasec-[ps]*-{os.getpid()}*")] == []
    assert os.sched_getaffinity(0) == mask


def test_a_kernel_that_is_known_to_starve_groups_is_found_by_trying() -> None:
    found = probe()
    if os.uname().release.startswith("6.18.44"):
        assert not found.nested_weight
        assert "starve" in " ".join(found.warnings)
    assert found.weight


@pytest.fixture
def hierarchy() -> Iterator[cgroupfs.Hierarchy]:
    """On v2 with a top group that hands the controller on, as systemd has it."""
    found = cgroupfs.find_hierarchy()
    control = f"{found.mount}/cgroup.subtree_control"
    ready = found.version == 1 or cgroupfs.hands_on_cpu(control)
    if not ready:
        cgroupfs.hand_on_cpu(control, on=True)
    yield found
    if not ready:
        cgroupfs.hand_on_cpu(control, on=False)


def test_two_groups_that_nobody_re_weights_share_a_busy_cpu(hierarchy: cgroupfs.Hierarchy) -> None:
    """The control: without load on another CPU no kernel starves anybody, however busy the host is."""
    cpu = sorted(os.sched_getaffinity(0))[-1]
    with spinner(cpu, 60.0) as other:
        other.begin()
        duel = try_duel(hierarchy, hierarchy.root, cpu, cpu)
    assert not duel.starves


def test_what_is_tried_ends_by_itself_should_it_starve_us() -> None:
    with spinner(sorted(os.sched_getaffinity(0))[0], 0.05) as child:
        child.begin()
        wait_for(lambda: procfs.read_stat(child.pid, child.pid).state == "Z")


def test_who_tries_is_what_it_was_afterwards() -> None:
    before = schedattr.get(0)
    probe()
    assert schedattr.get(0) == before
