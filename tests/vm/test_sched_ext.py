"""Our sched_ext scheduler in guests whose kernel has sched_ext."""

from __future__ import annotations

import pytest

from guests.throw_away import CgroupLayout
from tests.ahead import Ahead
from tests.vm.errands import NEWER, SCHED_EXT, TestsRun

CONSOLE_TAIL = 6000
FOLDER = "tests/sched_ext"
COMMAND = "command or meanwhile or puts_out"
CHANGES = "slots or masks or moves or second_one or cpu_limit or controller or cpu_that_goes or born"
EDGES = (
    "tests/host/test_wake_edges.py tests/host/test_watching.py"
    " -k 'test_counts or (scheduled and not (burst or continued or meanwhile))'"
)
"""Without three that take it for granted that programs are attached within a time slice, which a guest on a
busy machine may not do."""

PARTS = {
    "rule": f"{FOLDER}/test_budget.py {FOLDER}/test_critical.py {FOLDER}/test_scx.py"
    f" -k 'budget or not ({COMMAND} or {CHANGES})'",
    "changes": f"{FOLDER}/test_groups.py {FOLDER}/test_scx.py -k 'test_groups or {COMMAND} or {CHANGES}'",
    "safety": f"{FOLDER}/test_safety.py",
    "host": f"{FOLDER}/test_host.py tests/contract -k sched_ext",
    "partial": f"{FOLDER}/test_partial.py",
    "counts": f"{FOLDER}/test_counts.py {EDGES}",
}
"""A guest each: all in one come near its time limit on a busy machine. To begin one costs 20 s of a core."""

RUNS = {name: TestsRun(SCHED_EXT, CgroupLayout.V2, tests) for name, tests in PARTS.items()}

ON_A_NEWER = TestsRun(NEWER, CgroupLayout.V2, f"{FOLDER}/test_newer.py {FOLDER}/test_counts.py")

pytestmark = pytest.mark.vm


@pytest.mark.parametrize(
    "tests",
    [pytest.param(one, marks=pytest.mark.ahead.with_args(one), id=name) for name, one in RUNS.items()],
)
def test_our_scheduler_shares_by_weights_prefers_the_critical_and_ends_cleanly(
    ahead: Ahead, tests: TestsRun
) -> None:
    run = ahead.result(tests)
    assert run.exit_status == 0, run.console[-CONSOLE_TAIL:]
    assert " passed" in run.console
    assert " skipped" not in run.console


@pytest.mark.ahead.with_args(ON_A_NEWER)
def test_the_same_object_schedules_on_the_newest_kernel_of_debian_as_it_comes(ahead: Ahead) -> None:
    run = ahead.result(ON_A_NEWER)
    assert run.exit_status == 0, run.console[-CONSOLE_TAIL:]
    assert " passed" in run.console
    assert " skipped" not in run.console
