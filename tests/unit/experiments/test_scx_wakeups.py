"""What a wake-up costs under our scheduler: how it is counted, and that the published is what was kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.studies.sched_ext.pairs import ARMS, SCENES
from experiments.studies.sched_ext.wakeups import draw, instructions, rows, runs_in, table

FOLDER = Path(__file__).parents[3] / "experiments/studies/sched_ext"
RUNS = FOLDER / "cost-results"
KEPT, SEVEN_TRIES = RUNS / "wakeups.jsonl", RUNS / "seven-tries.jsonl"
"""The latter is from before decision 0088."""

LESS_LAPSES, NEAR = RUNS / "nobody-was-ahead.jsonl", RUNS / "near.jsonl"
"""Decisions 0089 and 0091."""

OF_TWO = (
    RUNS / "two-fewer-tries.jsonl",
    RUNS / "two-nobody-was-ahead.jsonl",
    NEAR,
    RUNS / "two-confined.jsonl",
)
"""With turns of 500: decisions 0088, 0089, 0091 and 0098."""

BEFORE, AFTER = RUNS / "before.jsonl", RUNS / "after.jsonl"
"""Of decision 0087, and of pairs that began one after the other."""


def test_all_instructions_of_busy_cpus_are_the_wake_ups() -> None:
    """Two CPUs of 200 MIPS for half a second, and 5000 rounds of two wake-ups."""
    assert instructions({"busy": 2, "seconds": 0.5, "rounds": 5000}) == pytest.approx(20_000)


def test_a_pair_keeps_one_cpu_busy_and_many_pairs_all() -> None:
    one, pinned, free = SCENES
    assert (one.busy(80), pinned.busy(80), free.busy(2)) == (1, 80, 2)
    assert one.cpus(0, 2) == {0}
    assert [pinned.cpus(pair, 2) for pair in (0, 1, 2)] == [{0}, {1}, {0}]
    assert free.cpus(5, 3) == {0, 1, 2}


def test_every_scene_was_run_under_every_arm() -> None:
    assert all(row.costs.keys() == set(ARMS) for row in rows(runs_in(KEPT)))


def test_the_kernels_own_costs_the_same_when_it_runs_again() -> None:
    for row in rows(runs_in(KEPT)):
        assert row.costs[ARMS[-1]] == pytest.approx(row.costs[ARMS[0]], rel=0.05), row


@pytest.mark.parametrize("kept", [KEPT, SEVEN_TRIES, BEFORE, AFTER, LESS_LAPSES, NEAR])
def test_the_page_has_the_table_of_the_kept_runs(kept: Path) -> None:
    assert f"\n\n{table(runs_in(kept))}\n\n" in (FOLDER / "README.md").read_text(encoding="utf-8")


def test_every_scene_costs_less_than_before() -> None:
    for now, before in zip(rows(runs_in(AFTER)), rows(runs_in(BEFORE)), strict=True):
        assert (now.cpus, now.scene) == (before.cpus, before.scene)
        assert now.ratio < before.ratio


def test_tries_in_vain_were_most_of_what_a_wake_up_on_sixteen_cpus_cost() -> None:
    free = SCENES[-1].name
    now, before = (
        {(row.cpus, row.scene): row.ratio for row in rows(runs_in(kept))} for kept in (KEPT, SEVEN_TRIES)
    )
    assert now[16, free] < 0.52 * before[16, free]
    assert now[2, free] < 0.93 * before[2, free]
    for where in before.keys() - {(16, free), (2, free)}:
        assert now[where] == pytest.approx(before[where], rel=0.04)


def test_since_less_lapses_only_free_pairs_cost_more() -> None:
    now, before = (
        {(row.cpus, row.scene): row.ratio for row in rows(runs_in(kept))} for kept in (LESS_LAPSES, KEPT)
    )
    free = SCENES[-1].name
    assert (now.pop((2, free)), before[2, free]) == pytest.approx((1.39, 1.28), abs=0.02)
    assert (now.pop((16, free)), before[16, free]) == pytest.approx((2.52, 2.32), abs=0.02)
    assert now == pytest.approx({where: before[where] for where in now}, rel=0.02)


def test_short_turns_say_what_each_rule_costs_on_two_cpus() -> None:
    free = SCENES[-1].name
    found = [{(row.cpus, row.scene): row.ratio for row in rows(runs_in(kept))} for kept in OF_TWO]
    assert [one.pop((2, free)) for one in found] == pytest.approx([1.33, 1.46, 1.41, 1.36], abs=0.01)
    for scene in (scene.name for scene in SCENES[:-1]):
        assert [one[2, scene] for one in found] == pytest.approx([found[0][2, scene]] * 4, rel=0.03)
    assert found[2][16, free] == pytest.approx(2.66, abs=0.01)


def test_only_threads_that_all_cpus_share_cost_the_more_the_more_cpus_there_are() -> None:
    ratio = {(row.cpus, row.scene): row.ratio for row in rows(runs_in(KEPT))}
    one, pinned, free = (scene.name for scene in SCENES)
    for cpus in (16, 80):
        assert ratio[cpus, one] < 1.5
        assert ratio[cpus, pinned] < 1.3
    assert 1.5 * ratio[2, free] < ratio[16, free] < 2.5
    assert 1.5 * ratio[16, free] < ratio[80, free] < 4.2


def test_every_row_is_in_the_picture(tmp_path: Path) -> None:
    draw(runs_in(KEPT), tmp_path / "wakeups.png")
    assert (tmp_path / "wakeups.png").stat().st_size > 0
