"""The published table of our sched_ext scheduler is what the kept runs say."""

from __future__ import annotations

from pathlib import Path

from experiments.studies.sched_ext.published import KEPT, lapse_table

README = Path(__file__).parents[3] / "experiments/studies/sched_ext/README.md"


def test_the_kept_runs_give_the_published_table() -> None:
    assert KEPT.table() in README.read_text(encoding="utf-8")


def test_all_work_was_done_in_every_cell() -> None:
    for _, runs in KEPT.cells():
        plain, ours = runs["none"], runs["scx"]
        assert abs(ours.requests / plain.requests - 1) < 0.02
        assert not plain.background_s or ours.background_s / plain.background_s > 0.98


def test_the_runs_of_the_present_rule_give_its_table() -> None:
    assert lapse_table() in README.read_text(encoding="utf-8")
