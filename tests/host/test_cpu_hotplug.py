"""A CPU goes offline under a running host and comes back: in guests only, where nobody else needs it.

Run there by tests/vm/test_kernels_and_layouts.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dasec.model import Change, Core, Knob, Outcome
from tests.contract.stage import MainlineStage, roster

pytestmark = [
    pytest.mark.host,
    pytest.mark.skipif(os.environ.get("DASEC_GUEST") != "1", reason="would take a CPU from everybody here"),
]

ONLINE = Path("/sys/devices/system/cpu/cpu1/online")


@pytest.fixture(autouse=True)
def _online_again() -> Iterator[None]:
    yield
    ONLINE.write_text("1")


def test_a_cpu_that_goes_offline_is_no_core_until_it_is_back_and_every_mask_returns(
    stage: MainlineStage,
) -> None:
    vcpu = stage.spawn()
    before = stage.held_by_kernel(vcpu)
    seen = stage.mainline.observe(roster([vcpu]))
    assert seen.topology.cores == (0, 1)
    pin = Change(vcpu, Knob.AFFINITY, frozenset({Core(0), Core(1)}), frozenset({Core(1)}), "test")
    assert stage.mainline.apply([pin])[0].outcome is Outcome.APPLIED

    ONLINE.write_text("0")
    seen = stage.mainline.observe(roster([vcpu]))
    assert seen.topology.cores == (0,)
    assert vcpu in seen.counters

    ONLINE.write_text("1")
    assert stage.mainline.observe(roster([vcpu])).topology.cores == (0, 1)
    stage.mainline.restore()
    assert stage.held_by_kernel(vcpu) == before
