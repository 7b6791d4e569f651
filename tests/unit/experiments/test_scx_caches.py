"""Whether threads stay with their caches: what is published is what was kept."""

from __future__ import annotations

from pathlib import Path

from experiments.studies.sched_ext.caches import draw, far_a_second, runs_in, table
from experiments.studies.sched_ext.moves import ARMS, AS_ONE, EEVDF, OURS, SCENES

FOLDER = Path(__file__).parents[3] / "experiments/studies/sched_ext"
RUNS = runs_in(FOLDER / "cache-results/caches.jsonl")


def far(arm: str, scene: str) -> float:
    (run,) = (run for run in RUNS if (run["arm"], run["scene"]) == (arm, scene))
    return far_a_second(run)


def test_the_page_has_the_table_of_the_kept_runs() -> None:
    assert f"\n\n{table(RUNS)}\n\n" in (FOLDER / "README.md").read_text(encoding="utf-8")


def test_every_scene_was_run_under_every_arm_on_two_caches() -> None:
    assert len(RUNS) == len(ARMS) * len(SCENES)
    assert {run["caches"] for run in RUNS} == {2}


def test_a_tenth_of_the_changes_is_left_where_seven_vms_compute_and_none_where_one_does() -> None:
    one, seven = (scene.name for scene in SCENES)
    assert far(OURS, one) < 1
    assert 0.09 < far(OURS, seven) / far(AS_ONE, seven) < 0.11


def test_eevdf_changes_less_still() -> None:
    assert far(EEVDF, SCENES[1].name) < far(OURS, SCENES[1].name)


def test_they_are_drawn(tmp_path: Path) -> None:
    draw(RUNS, tmp_path / "caches.png")
    assert (tmp_path / "caches.png").stat().st_size > 0
