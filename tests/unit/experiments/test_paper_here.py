"""What the paper's figures say of this host is what was measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.paper.here import FOLDER, PICTURE, draw, figures, table


@pytest.mark.parametrize("figure", figures())
def test_the_page_of_a_figure_has_the_table_of_its_runs_and_their_picture(figure: str) -> None:
    page = (FOLDER / figure / "README.md").read_text(encoding="utf-8")
    assert [line for line in table(figure).splitlines() if line not in page.splitlines()] == []
    assert f"({PICTURE})" in page
    assert (FOLDER / figure / PICTURE).exists()


def test_a_picture_is_drawn_from_them(tmp_path: Path) -> None:
    (first, *_) = figures()
    draw(first, tmp_path / PICTURE)
    assert (tmp_path / PICTURE).stat().st_size > 1000
