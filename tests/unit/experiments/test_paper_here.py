"""What the paper's figures say of this host is what was measured."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from experiments.results.analysis import PACE
from experiments.studies.paper.here import FOLDER, METRICS, Line, kept_runs, surroundings, table
from experiments.studies.paper.pooled import METRICS as POOLED
from experiments.studies.paper.pooled import pooled, pooled_table, undisturbed, without_disturbed
from experiments.studies.paper.published import drawn, drawn_pooled

CALM, BUSY = "0.19", "0.21"
"""Cores that something else used."""


def compared(arms: int) -> Sequence[Line]:
    """A service and batch work that share a cell, under so many arms."""
    cell = {"cell": "both-r2-vm", "mix": "both", "ratio": "2.0", "place": "cgroup"}
    effect = {"over_none": "1.2", "low": "0.9", "high": "1.5", "verdict": "no effect"}
    measured = [("cache", metric) for metric in METRICS] + [("batch", PACE)]
    return [
        {**cell, **effect, "arm": f"arm-{arm}", "part": part, "metric": metric}
        for arm in range(arms)
        for part, metric in measured
    ]


def run(latency_ms: float, other_cores: str = CALM) -> Sequence[Line]:
    """Of one instance."""
    return [{**{f"{metric}_ms": str(latency_ms) for metric in POOLED}, "other_cores": other_cores}]


def page_of(kept: str) -> str:
    return (FOLDER / kept).with_name("README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("kept", kept_runs())
def test_the_page_of_a_figure_has_the_table_of_its_runs_and_their_picture(kept: str) -> None:
    picture = (FOLDER / kept).with_suffix(".png")
    assert f"\n\n{table(kept)}\n\n" in page_of(kept)
    assert f"({picture.name})" in page_of(kept)
    assert picture.exists()


def test_all_figures_but_those_that_need_tailbench_were_run_here() -> None:
    needs = {str(file.relative_to(FOLDER).with_suffix("")) for file in FOLDER.glob("*/here.toml")}
    assert needs - set(kept_runs()) == {"fig1-2/here"}


@pytest.mark.parametrize("kept", kept_runs())
def test_the_page_of_a_figure_says_what_else_used_the_host_meanwhile(kept: str) -> None:
    assert f"; {surroundings(kept)}. " in page_of(kept)


def test_the_overview_has_what_all_runs_say_together() -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert f"\n\n{pooled_table()}\n\n" in page
    assert f"\n{without_disturbed()}\n" in page


def test_a_repetition_whose_plain_run_was_disturbed_is_left_out_and_else_only_the_run_that_was() -> None:
    calm = {"none": run(1.0), "none-again": run(1.0), "dasec": run(3.0)}
    shaken = {**calm, "dasec": run(9.0, BUSY)}
    unusable = {**calm, "none": run(2.0, BUSY)}
    found = pooled(undisturbed([*[calm] * 12, shaken, unusable]))
    assert {arm: len(each["p99"]) for arm, each in found.items()} == {
        "none": 13,
        "none-again": 13,
        "dasec": 12,
    }
    assert max(found["dasec"]["p99"]) == pytest.approx(3.0)


@pytest.mark.parametrize("arms", [1, 8])
def test_a_picture_has_every_effect_once_and_pace_in_its_first_panel(arms: int) -> None:
    first, second = drawn(compared(arms)).axes
    assert (first.get_title(), second.get_title()) == ("mean or pace over none", "p99 over none")
    assert first.get_yticklabels()[1].get_text() == "both: batch, ratio 2: pace"
    assert (len(first.lines), len(second.lines)) == (1 + 2 * 2 * arms, 1 + 2 * arms)  # a line and a mark each


def test_all_figures_together_are_a_picture() -> None:
    assert [axes.get_title() for axes in drawn_pooled().axes] == [
        f"{name} over both plain runs" for name in POOLED
    ]
