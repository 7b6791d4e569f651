"""The published table of our sched_ext scheduler is what the kept runs say."""

from __future__ import annotations

from pathlib import Path

from experiments.studies.sched_ext.published import KEPT

README = Path(__file__).parents[3] / "experiments/studies/sched_ext/README.md"


def test_the_kept_runs_give_the_published_table() -> None:
    assert KEPT.table() in README.read_text(encoding="utf-8")


def test_all_work_was_done_in_every_cell() -> None:
    for _, runs in KEPT.cells():
        plain, again, ours = runs["none"], runs["none-again"], runs["scx"]
        assert abs(ours.requests / plain.requests - 1) < 0.02
        done_s = min(
            plain.background_s, again.background_s
        )  # on 16 CPUs one plain run did 3 % more than the other
        assert not done_s or ours.background_s / done_s > 0.98
