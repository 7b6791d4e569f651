"""Whether threads stay with their caches: what is published is what was kept."""

from __future__ import annotations

from pathlib import Path

from experiments.places.counted.machine import Run
from experiments.studies.sched_ext.caches import draw, far_a_second, first_part, runs_in, table
from experiments.studies.sched_ext.moves import (
    ARMS,
    AS_FOUR,
    AS_ONE,
    EEVDF,
    HYBRID,
    IN_NODES,
    OURS,
    SCENES,
    scenes_of,
)

FOLDER = Path(__file__).parents[3] / "experiments/studies/sched_ext"
PAGE = (FOLDER / "README.md").read_text(encoding="utf-8")
RUNS = runs_in(FOLDER / "cache-results/caches.jsonl")


FULL = [scene.name for scene in SCENES if not scene.sleep_ms]
HALF_BUSY, MOSTLY_IDLE = (scene.name for scene in SCENES if scene.sleep_ms)


def run_of(arm: str, scene: str) -> Run:
    (run,) = (run for run in RUNS if (run["arm"], run["scene"]) == (arm, scene))
    return run


def far(arm: str, scene: str) -> float:
    return far_a_second(run_of(arm, scene))


def test_the_page_has_the_table_of_the_kept_runs() -> None:
    assert f"\n\n{table(RUNS)}\n\n" in PAGE


def test_every_scene_was_run_under_every_arm_on_two_caches() -> None:
    assert [(run["arm"], run["scene"]) for run in RUNS] == [
        (arm, scene.name) for arm in ARMS for scene in scenes_of(arm)
    ]
    assert {run["caches"] for run in RUNS} == {2}


def test_an_eighth_of_the_changes_is_left_where_seven_vms_compute_and_none_where_one_does() -> None:
    one, seven = FULL
    assert far(OURS, one) < 1
    assert 0.12 < far(OURS, seven) / far(AS_ONE, seven) < 0.14


def test_who_wakes_up_changes_caches_as_often_as_the_page_says() -> None:
    numbers = f"{far(OURS, HALF_BUSY):.0f} changes a second instead of {far(AS_ONE, HALF_BUSY):.0f}"
    assert f"{numbers}. EEVDF has {far(EEVDF, HALF_BUSY):.0f}" in PAGE


def test_who_wakes_up_changes_nodes_as_often_as_the_page_says() -> None:
    assert f"change between the nodes {far(IN_NODES, HALF_BUSY):.0f} times a second" in PAGE
    assert f"Told of the four caches only, {far(AS_FOUR, HALF_BUSY):.0f} times" in PAGE


def test_critical_threads_are_on_larger_cpus_as_often_as_the_page_says() -> None:
    most, more = (first_part(run_of(HYBRID, scene)) for scene in (MOSTLY_IDLE, HALF_BUSY))
    assert f"at {most:.0%} of the looks".replace("%", " %") in PAGE
    instead = f"at {more:.0%} instead of {first_part(run_of(AS_ONE, HALF_BUSY)):.0%}"
    assert instead.replace("%", " %") in PAGE


def test_eevdf_changes_less_still() -> None:
    assert far(EEVDF, FULL[1]) < far(OURS, FULL[1])


def test_they_are_drawn(tmp_path: Path) -> None:
    draw(RUNS, tmp_path / "caches.png")
    assert (tmp_path / "caches.png").stat().st_size > 0
