"""The host tests of this kernel again, on Debian's kernels and every cgroup layout, in QEMU guests.

Timing means nothing under TCG. What does not depend on it must hold there as it does here: the
contract of the mainline host, groups of our own, what is restored, and the whole daemon end to end.
"""

from __future__ import annotations

import pytest

from dasec.linux.cgroupfs import find_hierarchy
from dasec.linux.errors import HierarchyMissing
from guests.throw_away import CgroupLayout
from tests.ahead import Ahead
from tests.vm.errands import NEWER, TestsRun

CONSOLE_TAIL = 6000

EEVDF = "linux-image-6.12-amd64"
CFS = "linux-image-amd64"
"""Debian 12's own kernel: 6.1, the last series with CFS."""

CONTRACT = "tests/contract"
OF_MAINLINE = "-k 'not (fake or patched_cfs or sched_ext or scheduled)'"
"""The fake host is the same anywhere; the others have guests of their own."""
QUOTAS = "tests/host/test_caps.py tests/host/test_loans.py"
STRANGERS = "tests/host/test_strangers_in_groups.py"
GROUPS = f"tests/host/test_mainline_groups.py {STRANGERS} tests/host/test_machine_scopes.py"
RIVALS = f"tests/host/test_mainline_rivals.py tests/host/test_masks.py {QUOTAS}"
PROBE = "tests/host/test_probe.py"
LEAVES = f"{PROBE}::test_probing_leaves_nothing_behind"
HOTPLUG = "tests/host/test_cpu_hotplug.py"
FEEDERS = "tests/host/test_feeders.py"
BPF = "tests/host/test_thread_counters.py"
EDGES = "tests/host/test_wake_edges.py"
END_TO_END = "'tests/host/test_run.py::test_fifty_periods_are_recorded_replay_and_leave_no_trace[{}]'"
"""One policy on each kernel: it takes a minute there."""


def is_v1_here() -> bool:
    """Then `make test` runs contract and rivals on that layout, with this machine's own kernel."""
    try:
        return find_hierarchy().version == 1
    except HierarchyMissing:
        return False


ON_EEVDF = [
    TestsRun(EEVDF, layout, " ".join((OF_MAINLINE, GROUPS, *once)))
    for layout, once in (
        (CgroupLayout.V2, (RIVALS, CONTRACT, BPF, PROBE, HOTPLUG, FEEDERS, END_TO_END.format("dasec"))),
        (CgroupLayout.HYBRID, ()),  # groups must be found there; its cpu controller is v1's
        (CgroupLayout.V1, (LEAVES,) if is_v1_here() else (RIVALS, CONTRACT, LEAVES)),
    )
]
"""CPUs, counters, what a kernel does when it is tried, and what a policy makes of groups that can be written:
the same whatever the layout."""
ON_CFS = TestsRun(
    CFS,
    CgroupLayout.V2,
    f"{OF_MAINLINE} {CONTRACT} tests/host/test_masks.py {QUOTAS} {END_TO_END.format('static')}",
)
"""Whether the paper's rules find anything to do without slices depends on chance; static always does."""
ON_THE_NEWEST = TestsRun(NEWER, CgroupLayout.V2, f"{OF_MAINLINE} {CONTRACT} {BPF} {EDGES}")
"""What the daemon reads and writes by the kernel's own structures, which are others there."""

pytestmark = pytest.mark.vm


@pytest.mark.parametrize(
    "tests", [pytest.param(one, marks=pytest.mark.ahead.with_args(one), id=one.layout) for one in ON_EEVDF]
)
def test_an_eevdf_kernel_is_controlled_and_restored_whatever_its_cgroup_layout(
    tests: TestsRun, ahead: Ahead
) -> None:
    run = ahead.result(tests)
    assert run.exit_status == 0, run.console[-CONSOLE_TAIL:]


@pytest.mark.ahead.with_args(ON_CFS)
def test_a_kernel_without_the_latency_knob_is_managed_with_weights_and_affinity_alone(ahead: Ahead) -> None:
    run = ahead.result(ON_CFS)
    assert run.exit_status == 0, run.console[-CONSOLE_TAIL:]


@pytest.mark.ahead.with_args(ON_THE_NEWEST)
def test_the_newest_kernel_of_debian_is_controlled_and_its_threads_and_wake_ups_are_counted(
    ahead: Ahead,
) -> None:
    run = ahead.result(ON_THE_NEWEST)
    assert run.exit_status == 0, run.console[-CONSOLE_TAIL:]
    assert " passed" in run.console
    assert " skipped" not in run.console
