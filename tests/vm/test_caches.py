"""Threads on CPUs of two caches, on our sched_ext scheduler, in a counted guest: the same each time."""

from __future__ import annotations

import pytest

from experiments.places.counted.machine import Run
from experiments.studies.sched_ext.caches import far_a_second
from experiments.studies.sched_ext.moves import AS_ONE, OURS, SCENES
from tests.ahead import Ahead
from tests.vm.errands import TwoCaches

SHORT = TwoCaches(0.5)

pytestmark = [pytest.mark.vm, pytest.mark.ahead.with_args(SHORT)]


@pytest.fixture
def runs(ahead: Ahead) -> dict[tuple[object, object], Run]:
    return {(run["arm"], run["scene"]): run for run in ahead.result(SHORT)}


@pytest.mark.parametrize("scene", [scene.name for scene in SCENES])
def test_threads_stay_with_their_caches_while_others_of_their_vm_wait_there(
    runs: dict[tuple[object, object], Run], scene: str
) -> None:
    ours, as_one = runs[OURS, scene], runs[AS_ONE, scene]
    assert ours["caches"] == 2
    assert far_a_second(ours) < far_a_second(as_one) / 4


@pytest.mark.parametrize("scene", [scene.name for scene in SCENES])
def test_no_thread_of_a_cache_has_much_less_than_another(
    runs: dict[tuple[object, object], Run], scene: str
) -> None:
    ours = runs[OURS, scene]
    assert float(str(ours["least_s"])) > 0.5 * float(str(ours["most_s"]))
