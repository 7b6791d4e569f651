"""Our sched_ext scheduler in a guest whose kernel has sched_ext."""

from __future__ import annotations

import pytest

from guests.throw_away import CgroupLayout
from tests.ahead import Ahead
from tests.vm.errands import NEWER, SCHED_EXT, TestsRun

CONSOLE_TAIL = 6000
RUN = TestsRun(SCHED_EXT, CgroupLayout.V2, "tests/sched_ext tests/contract -k sched_ext")

ON_A_NEWER = TestsRun(NEWER, CgroupLayout.V2, "tests/sched_ext/test_newer.py")

pytestmark = [pytest.mark.vm, pytest.mark.timeout(1800)]


@pytest.mark.ahead.with_args(RUN)
def test_our_scheduler_shares_by_weights_prefers_the_critical_and_ends_cleanly(ahead: Ahead) -> None:
    run = ahead.result(RUN)
    assert run.exit_status == 0, run.console[-CONSOLE_TAIL:]
    assert " passed" in run.console
    assert " skipped" not in run.console


@pytest.mark.ahead.with_args(ON_A_NEWER)
def test_the_same_object_schedules_on_the_newest_kernel_of_debian_as_it_comes(ahead: Ahead) -> None:
    run = ahead.result(ON_A_NEWER)
    assert run.exit_status == 0, run.console[-CONSOLE_TAIL:]
    assert " passed" in run.console
    assert " skipped" not in run.console
