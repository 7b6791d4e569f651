"""Threads on CPUs of two caches, or capacities, on our sched_ext scheduler, in a counted guest: the same each
time."""

from __future__ import annotations

import pytest

from experiments.places.counted.machine import Run
from experiments.studies.sched_ext.caches import far_a_second, first_part
from experiments.studies.sched_ext.moves import AS_FOUR, AS_ONE, HYBRID, IN_NODES, OURS, SCENES
from tests.ahead import Ahead
from tests.vm.errands import TwoCaches

SHORT = TwoCaches(0.45)
"""In two thirds of that too few threads change caches to compare."""
FULL = [scene.name for scene in SCENES if not scene.sleep_ms]
HALF_BUSY, MOSTLY_IDLE = (scene.name for scene in SCENES if scene.sleep_ms)
LARGE = 4 / 7
"""Of the CPUs, those of the first cache."""

pytestmark = [pytest.mark.vm, pytest.mark.ahead.with_args(SHORT)]


@pytest.fixture
def runs(ahead: Ahead) -> dict[tuple[object, object], Run]:
    return {(run["arm"], run["scene"]): run for run in ahead.result(SHORT)}


@pytest.mark.parametrize("scene", FULL)
def test_threads_stay_with_their_caches_while_others_of_their_vm_wait_there(
    runs: dict[tuple[object, object], Run], scene: str
) -> None:
    ours, as_one = runs[OURS, scene], runs[AS_ONE, scene]
    assert ours["caches"] == 2
    assert far_a_second(ours) < far_a_second(as_one) / 3


@pytest.mark.parametrize("scene", FULL)
def test_no_thread_of_a_cache_has_much_less_than_another(
    runs: dict[tuple[object, object], Run], scene: str
) -> None:
    ours = runs[OURS, scene]
    assert float(str(ours["least_s"])) > 0.5 * float(str(ours["most_s"]))


def test_a_thread_that_wakes_up_is_given_an_idle_cpu_of_its_cache(
    runs: dict[tuple[object, object], Run],
) -> None:
    assert far_a_second(runs[OURS, HALF_BUSY]) < far_a_second(runs[AS_ONE, HALF_BUSY]) / 2


def test_if_its_cache_has_none_it_is_given_one_of_its_node(
    runs: dict[tuple[object, object], Run],
) -> None:
    assert far_a_second(runs[IN_NODES, HALF_BUSY]) < far_a_second(runs[AS_FOUR, HALF_BUSY]) * 0.75


def test_critical_threads_are_given_idle_cpus_of_the_largest_capacity(
    runs: dict[tuple[object, object], Run],
) -> None:
    assert first_part(runs[HYBRID, MOSTLY_IDLE]) > 0.9
    assert first_part(runs[HYBRID, HALF_BUSY]) > LARGE + 0.15
    assert first_part(runs[AS_ONE, HALF_BUSY]) < LARGE + 0.1
