"""Services beside background on our sched_ext scheduler and on the plain kernel, in counted guests."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from experiments.results.kept_cells import Seen
from guests.qemu import Qemu
from tests.ahead import Ahead
from tests.vm.errands import NEWER, SCHED_EXT, ShortCell

NESTED = ShortCell("sched_ext/nested.toml", SCHED_EXT, lead_s=1.0)
KVM = ShortCell("kvm/quick.toml", NEWER, lead_s=3.0)

pytestmark = pytest.mark.vm


def assert_faster(runs: Mapping[str, Seen], mean: float, p99: float) -> None:
    """On our scheduler, below these parts of the plain kernel's, with all requests answered."""
    plain, ours = runs["none"], runs["scx"]
    assert ours.mean_ms < mean * plain.mean_ms
    assert ours.p99_ms < p99 * plain.p99_ms
    assert ours.requests > 0.98 * plain.requests


@pytest.mark.ahead.with_args(NESTED)
def test_requests_take_half_as_long_and_all_work_is_done(ahead: Ahead, qemu: Qemu) -> None:
    """0.37 of the mean and 0.23 of p99; the plain kernel's second run has 1.04 and 1.06."""
    runs = ahead.result(NESTED)
    assert_faster(runs, mean=0.5, p99=0.4)
    assert runs["scx"].background_cores > 0.98 * runs["none"].background_cores


@pytest.mark.ahead.with_args(KVM)
def test_requests_to_kvm_virtual_machines_do_so_too_on_the_newest_kernel_of_debian(
    ahead: Ahead, qemu: Qemu
) -> None:
    """0.47 of the mean and 0.36 of p99; the plain kernel's second run has 1.02 and 0.89."""
    runs = ahead.result(KVM)
    assert_faster(runs, mean=0.65, p99=0.65)
    assert runs["scx"].cores > 0.95 * runs["none"].cores
