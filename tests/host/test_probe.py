"""Probing this kernel."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dasec.hosts.probe import probe
from dasec.linux import cgroupfs

pytestmark = pytest.mark.host


def test_slices_work_where_the_kernel_has_them_and_the_other_knobs_everywhere() -> None:
    eevdf = "se.slice" in Path("/proc/self/sched").read_text(encoding="ascii")
    found = probe(storm=False)
    assert (found.weight, found.rescheduling_latency, found.affinity) == (True, eevdf, True)
    assert ("default is" if eevdf else "ignores") in found.rescheduling_latency_note


def test_probing_leaves_nothing_behind() -> None:
    mount = Path(cgroupfs.find_hierarchy().mount)
    mask = os.sched_getaffinity(0)
    probe()
    assert [path.name for path in mount.glob(f"dasec-[ps]*-{os.getpid()}*")] == []
    assert os.sched_getaffinity(0) == mask


def test_what_the_kernels_version_suggests_is_tried_and_said() -> None:
    """Either verdict is right here; saying nothing about a suspect kernel is not."""
    said = " ".join(probe().warnings)
    if os.uname().release.startswith("6.18.44"):
        assert "weight changes" in said
        assert "at most once a period" in said
