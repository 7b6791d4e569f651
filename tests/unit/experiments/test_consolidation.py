"""The paper's figures over the consolidation ratio: what is published is what was kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from dasec.lab.kit.arms import NONE
from experiments.plan.file import told_in
from experiments.plan.servers import Servers
from experiments.results.analysis import JUDGED
from experiments.run.planned import experiment_in
from experiments.studies.consolidation.published import (
    CPUS,
    OVER,
    THREADS,
    Point,
    beside,
    busiest,
    draw,
    files,
    table,
)

HERE = Path(__file__).resolve().parents[3] / "experiments/studies/consolidation"
PAGE = (HERE / "README.md").read_text(encoding="utf-8")
KEPT = files()
POINTS = [(name, at) for name, points in KEPT.items() for at in points]


@pytest.mark.parametrize("name", KEPT)
def test_the_page_has_the_tables_of_the_kept_runs(name: str) -> None:
    assert table(KEPT[name]) in PAGE


def test_the_page_has_the_papers_table_1() -> None:
    assert busiest(KEPT) in PAGE


def test_latencies_rise_over_those_of_one_vm_as_the_page_says() -> None:
    one, *_, most = KEPT["masstree"]
    alone = [one.ms(NONE, metric) for metric in JUDGED]
    for arm, said in (
        (NONE, "{:.2f} times the mean that one VM has alone, and {:.1f} times the p99"),
        ("scx", "{:.2f} and {:.2f} times"),
    ):
        rises = [most.ms(arm, metric) / low for metric, low in zip(JUDGED, alone, strict=True)]
        assert said.format(*rises) in PAGE


def test_the_page_has_what_was_done_beside_matrixmul() -> None:
    assert all(one in PAGE for one in beside())


@pytest.mark.parametrize("file", sorted(HERE.glob("*.toml")), ids=lambda file: str(file.name))
def test_every_file_asks_for_the_hosts_that_the_page_tells_of(file: Path) -> None:
    asked = experiment_in(told_in(file), file)
    assert isinstance(asked, Servers)
    assert asked.cpus == CPUS
    assert {one.threads for one in asked.server} == {THREADS}
    if file.stem in KEPT:
        assert {cell.name for cell in asked.cells.possible} == {
            block.cell for one in KEPT[file.stem] for block in one.cell.blocks
        }


@pytest.mark.parametrize(("name", "at"), POINTS, ids=[f"{name} {at.ratio:g}" for name, at in POINTS])
def test_every_arm_answered_all_requests(name: str, at: Point) -> None:
    for arm in OVER:
        requests, _ = at.cell.done(arm)
        assert requests == pytest.approx(1, abs=0.02)
        assert all(one.errors == one.unfinished == 0 for run in at.cell.runs(arm) for one in run.tenants)


def test_they_are_drawn(tmp_path: Path) -> None:
    for name, at in KEPT.items():
        assert at[0].ms(NONE, "mean") > 0
        draw(name, at, tmp_path / "one.png")
        assert (tmp_path / "one.png").stat().st_size > 0
