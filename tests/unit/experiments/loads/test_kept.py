"""What the pages say of the runs that are kept is what these say."""

from __future__ import annotations

from pathlib import Path

import pytest

from dasec.lab.kit.arms import CONTROL
from dasec.lab.kit.ratios import Effect, estimate
from experiments.plan.oracle import ORACLE
from experiments.results.analysis import JUDGED
from experiments.studies.loads.kept import (
    GUARDED,
    MODES,
    guarded_table,
    kept,
    mean_of_all,
    modes_table,
    no_gain_table,
)
from experiments.studies.loads.published import PICTURE, draw

REPOSITORY = Path(__file__).resolve().parents[4]
FAIRNESS, UNDER_GUARD, AGAIN = kept("fairness"), kept("guarded"), kept("guarded-again")
NO_GAIN = kept("no-gain")
SUMMARIES = FAIRNESS.summaries()


def page(name: str) -> str:
    return (REPOSITORY / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("metric", ["mean", "p99"])
def test_the_page_of_the_loads_has_each_way_to_be_fair(metric: str) -> None:
    assert modes_table(SUMMARIES, metric) in page("experiments/studies/loads/README.md").split("\n\n")


def test_every_block_that_was_asked_for_is_there() -> None:
    for one in (FAIRNESS, UNDER_GUARD, AGAIN, NO_GAIN):
        assert len(one.blocks) == len(one.wish.loads) * one.wish.repetitions
        assert all({run.arm for run in block.runs} == set(one.wish.arms) for block in one.blocks)


@pytest.mark.parametrize("name", ["docs/critical.md", "docs/decisions/0037-fairness.md"])
def test_pages_that_tell_them_in_short_have_the_same_means(name: str) -> None:
    best = mean_of_all(SUMMARIES, ORACLE, "mean")
    told = page(name).replace(" 0.", " .")
    for arm in MODES.values():
        mean = mean_of_all(SUMMARIES, arm, "mean")
        assert f"| {mean:.2f} ".replace(" 0.", " .") in told
        assert f"| {(1 - mean) / (1 - best):.0%} |".replace("%", " %") in told


def test_the_readme_has_the_means_of_the_default_and_of_giving() -> None:
    told = page("README.md")
    strict, giving = (
        [mean_of_all(SUMMARIES, MODES[mode], of) for of in JUDGED] for mode in ("strict", "giving")
    )
    assert " | ".join(f"{mean:.2f}" for mean in strict) in told
    assert f'`fairness = "giving"` the first mean is {giving[0]:.2f}' in told


def test_six_loads_gain_under_strict_and_all_under_the_others() -> None:
    told = {mode: [one.arms[arm].verdict for one in SUMMARIES] for mode, arm in MODES.items()}
    gains = {mode: verdicts.count(Effect.GAIN) for mode, verdicts in told.items()}
    assert gains == {"strict": 6, "giving": 8, "demand": 8}


def test_background_work_is_done_under_each_as_on_the_plain_host() -> None:
    for arm in MODES.values():
        assert all(0.965 <= one.arms[arm].ratios["background"].ratio < 1.025 for one in SUMMARIES)


def test_where_all_threads_serve_nothing_can_be_told_of_being_watched() -> None:
    assert no_gain_table(NO_GAIN) in page("experiments/studies/loads/README.md").split("\n\n")
    (fan_out, idle) = NO_GAIN.summaries()
    found = [one.arms["critical"].ratios[metric] for one in (fan_out, idle) for metric in JUDGED]
    assert all(one.low < 1 < one.high and one.ratio < 1.01 for one in found)
    numbers = " | ".join(f"{fan_out.arms['critical'].ratios[metric].ratio:.2f}" for metric in JUDGED)
    assert f"| nothing | all threads serve | {numbers} |" in page("README.md")


def test_the_page_of_the_guard_has_what_it_left_of_harm_in_nested_groups() -> None:
    assert guarded_table(UNDER_GUARD) in page("docs/guard.md").split("\n\n")
    (background, _) = UNDER_GUARD.summaries()
    found, noise = background.arms[GUARDED].ratios["mean"], background.arms[CONTROL].ratios["mean"]
    assert found.low < 1 < found.ratio
    assert noise.low < 1 < noise.high


def test_measured_again_nothing_shows_there_and_a_tenth_of_harm_is_excluded() -> None:
    assert guarded_table(AGAIN) in page("docs/guard.md").split("\n\n")
    (background,) = AGAIN.summaries()
    assert background.arms[GUARDED].ratios["mean"].high < 1.1
    both = [
        each
        for series in (UNDER_GUARD, AGAIN)
        for each in series.each_repetition(background.cell.name, GUARDED)
    ]
    found = estimate(both)
    told = f"{len(both)} repetitions: {found.ratio:.2f} [{found.low:.2f}, {found.high:.2f}] of the mean"
    assert told in page("docs/guard.md")


def test_no_run_in_nested_groups_wrote_a_weight() -> None:
    blocks = [*UNDER_GUARD.blocks, *AGAIN.blocks]
    rules = {rule for block in blocks for rule in block.of(GUARDED).decided if "critical" in rule}
    assert rules == {"rule critical.later"}


def test_the_picture_is_drawn_from_them(tmp_path: Path) -> None:
    draw(SUMMARIES, tmp_path)
    assert (tmp_path / PICTURE).stat().st_size > 10_000
