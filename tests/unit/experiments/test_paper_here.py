"""What the paper's figures say of this host is what was measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.paper.here import FOLDER, figures, pooled_table, table
from experiments.paper.pictures import PICTURE, draw, draw_pooled


@pytest.mark.parametrize("figure", figures())
def test_the_page_of_a_figure_has_the_table_of_its_runs_and_their_picture(figure: str) -> None:
    page = (FOLDER / figure / "README.md").read_text(encoding="utf-8")
    assert f"\n\n{table(figure)}\n\n" in page
    assert f"({PICTURE})" in page
    assert (FOLDER / figure / PICTURE).exists()


def test_all_figures_but_those_that_need_tailbench_were_run_here() -> None:
    needs = {folder.parent.name for folder in FOLDER.glob("*/here.toml")} - set(figures())
    assert needs == {"fig1-2"}


def test_the_overview_has_what_all_runs_say_together() -> None:
    assert f"\n\n{pooled_table()}\n\n" in (FOLDER / "README.md").read_text(encoding="utf-8")


def test_a_picture_is_drawn_from_them(tmp_path: Path) -> None:
    (first, *_) = figures()
    draw(first, tmp_path / PICTURE)
    draw_pooled(tmp_path / "all.png")
    assert all(file.stat().st_size > 1000 for file in tmp_path.iterdir())
    assert len(list(tmp_path.iterdir())) == 2
