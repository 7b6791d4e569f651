"""Pods, and the containers of real engines, where cgroup v2 is all there is: in a guest without systemd."""

from __future__ import annotations

import pytest

from guests.throw_away import CgroupLayout
from tests.ahead import Ahead
from tests.vm.errands import TestsRun

from .test_kernels_and_layouts import CONSOLE_TAIL, EEVDF

ENGINES = "tests/host/engines"
MANAGED = "managed_within"
LONGER_S = 700
"""Three threads compute there while Docker and a daemon start."""

RUNS = {
    "containers": TestsRun(EEVDF, CgroupLayout.V2, "tests/host/test_containers.py tests/fleet/test_pod.py"),
    "rights": TestsRun(EEVDF, CgroupLayout.V2, "tests/fleet/test_rights.py"),
    "engines, found": TestsRun(EEVDF, CgroupLayout.V2, f"{ENGINES}/test_discovery.py -k 'not crun'"),
    "a pod, managed": TestsRun(EEVDF, CgroupLayout.V2, f"{ENGINES}/test_managed.py -k '{MANAGED} and cri'"),
    "engines, managed": TestsRun(
        EEVDF, CgroupLayout.V2, f"{ENGINES}/test_managed.py -k '{MANAGED} and not cri and not crun'"
    ),
    "engines, restored": TestsRun(
        EEVDF, CgroupLayout.V2, f"{ENGINES}/test_managed.py -k 'not ({MANAGED} or crun)'"
    ),
    "crun": TestsRun(
        EEVDF, CgroupLayout.V2, f"{ENGINES}/test_discovery.py {ENGINES}/test_managed.py -k crun"
    ),
    "engines, limits": TestsRun(
        EEVDF, CgroupLayout.V2, f"{ENGINES}/test_limited.py -k keeps_it --timeout {LONGER_S}"
    ),
    "engines, churn": TestsRun(
        EEVDF, CgroupLayout.V2, f"{ENGINES}/test_churn.py --run-slow -k 'not crun'", "DASEC_CHURN_ROUNDS=8"
    ),
}

IN_CI = ("a pod, managed",)
"""One of containerd's, found and managed at the second look; of all engines that takes five minutes, and all
else half an hour."""

pytestmark = [pytest.mark.vm, pytest.mark.timeout(3600)]


@pytest.mark.parametrize(
    "tests",
    [
        pytest.param(
            one,
            marks=[pytest.mark.ahead.with_args(one), *([] if name in IN_CI else [pytest.mark.slow])],
            id=name,
        )
        for name, one in RUNS.items()
    ],
)
def test_they_are_managed_and_left_as_they_were_as_on_v1(tests: TestsRun, ahead: Ahead) -> None:
    run = ahead.result(tests)
    assert run.exit_status == 0, run.console[-CONSOLE_TAIL:]
    assert " passed" in run.console
    assert " skipped" not in run.console
