"""Two folders of results side by side. Nothing is measured."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from dasec.lab.kit.results import RunResult
from experiments.command import command
from experiments.results.compare import Difference, Side, differences_of
from experiments.results.rows import rows_of

from .loads.test_results import CELLS, HOST, NOTHING, WISH, done

KEPT = Path(__file__).resolve().parents[3] / "experiments/studies/fig13/results"
ALIKE = dict.fromkeys(WISH.arms, 1.0)


def side(slower: float, repetitions: Collection[int]) -> Side:
    """A folder with these repetitions of one cell."""
    found = done({**ALIKE, "critical": slower})
    blocks = [one for one in found if one.cell == CELLS[0].name and one.repetition in repetitions]
    return Side(Path("any"), "", {"seed": 1}, HOST, tuple(rows_of(CELLS[:1], blocks, WISH.arms)))


def critical(before: Side, after: Side) -> Difference:
    return next(
        one
        for one in differences_of(before, after).differences
        if (one.arm, one.metric) == ("critical", "mean")
    )


def test_repetitions_are_paired_by_their_numbers_also_where_one_is_missing() -> None:
    found = critical(side(1.0, range(5)), side(0.5, (0, 2, 3, 4)))
    assert found.effect.ratio == pytest.approx(0.5, rel=0.001)
    assert found.effect.high - found.effect.low < 0.001  # each repetition's own halves


def batch(per_s: float) -> Side:
    """A folder of work that has no latency, of which each workload does so much."""

    def only_work(run: RunResult) -> RunResult:
        tenants = (replace(one, latencies=NOTHING, throughput_per_s=per_s) for one in run.tenants)
        return replace(run, tenants=tuple(tenants))

    blocks = [replace(one, runs=tuple(map(only_work, one.runs))) for one in done(ALIKE)]
    return Side(Path("any"), "", {"seed": 1}, HOST, tuple(rows_of(CELLS[:1], blocks, WISH.arms)))


def test_batch_work_of_thousands_of_units_a_second_is_compared_as_well() -> None:
    found = differences_of(batch(8000.0), batch(4000.0)).differences
    assert {(one.metric, round(one.effect.ratio, 6)) for one in found} == {("pace", 2.0)}


def test_folders_without_a_repetition_in_common_show_no_difference() -> None:
    assert differences_of(side(1.0, (0, 1)), side(1.0, (2, 3))).differences == ()


def test_folders_whose_file_left_keys_out_are_compared() -> None:
    told = CliRunner().invoke(command, ["compare", str(KEPT), str(KEPT)], catch_exceptions=False)
    assert told.exit_code == 0
    assert ", seed 1\n" in told.output
