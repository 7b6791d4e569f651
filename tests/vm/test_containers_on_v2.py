"""Pods and containers where cgroup v2 is all there is: by containerd and runc in a guest without systemd."""

from __future__ import annotations

import pytest

from guests.throw_away import CgroupLayout
from tests.ahead import Ahead
from tests.vm.errands import TestsRun

from .test_kernels_and_layouts import CONSOLE_TAIL, EEVDF

RUNS = {
    "containers": TestsRun(EEVDF, CgroupLayout.V2, "tests/host/test_containers.py tests/fleet/test_pod.py"),
    "rights": TestsRun(EEVDF, CgroupLayout.V2, "tests/fleet/test_rights.py"),
}

pytestmark = [pytest.mark.vm, pytest.mark.slow, pytest.mark.timeout(3600)]


@pytest.mark.parametrize(
    "tests",
    [pytest.param(one, marks=pytest.mark.ahead.with_args(one), id=name) for name, one in RUNS.items()],
)
def test_they_are_managed_and_left_as_they_were_as_on_v1(tests: TestsRun, ahead: Ahead) -> None:
    run = ahead.result(tests)
    assert run.exit_status == 0, run.console[-CONSOLE_TAIL:]
    assert " passed" in run.console
    assert " skipped" not in run.console
