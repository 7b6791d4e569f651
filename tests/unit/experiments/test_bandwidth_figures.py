"""The figures on CPU limits: their table is whole, and claims hold if all values are in their bands."""

from __future__ import annotations

import pytest

from experiments.studies.bandwidth.__main__ import RESULTS, all_kept
from experiments.studies.bandwidth.figures import HERE, Figure, figures
from experiments.studies.bandwidth.guest import WORD_CHARACTERS, batches
from experiments.studies.bandwidth.report import changes, table, values, verdict

FIGURES = figures()
KEPT = all_kept(RESULTS)


@pytest.mark.parametrize("figure", FIGURES.values(), ids=FIGURES)
def test_every_claim_and_band_is_of_an_arm_and_every_run_fits_a_command_line(figure: Figure) -> None:
    for row in figure.rows:
        assert row.claims.keys() <= figure.arms.keys()
        assert (row.bands.keys() | row.changes.keys()) <= figure.arms.keys()
        assert row.above in {"", *(one.name for one in figure.rows)}
        assert all(low < high for low, high in row.bands.values())
    words = [run.word for run in figure.runs()]
    assert len(set(words)) == len(words) == len(figure.rows) * len(figure.arms) * len(figure.repeats)
    assert all(len(",".join(batch)) <= WORD_CHARACTERS for batch in batches(words))
    assert sum(batches(words), []) == words


def test_one_value_outside_the_band_and_the_claim_does_not_hold() -> None:
    row = FIGURES["leak"].rows[1]
    assert verdict(row, "stock", [1.5, 1.9]) == "holds"
    assert verdict(row, "stock", [1.5, 1.0]) == "does not hold"
    assert verdict(row, "config", [1.5]) == ""
    row = FIGURES["figure-4.3"].rows[1]
    assert verdict(row, "series", [8000], [-1.2]) == "holds"
    assert verdict(row, "series", [8000], [0.2]) == "does not hold"


def test_a_change_is_of_what_is_above_another_row() -> None:
    figure = FIGURES["figure-5.1"]
    told = {(1, "stock"): 800, (1, "series"): 800, (4, "stock"): 1000, (4, "series"): 810}
    runs = [{"row": row, "arm": arm, figure.value: value} for (row, arm), value in told.items()]
    assert changes(figure, runs, 4, "series") == [pytest.approx(-95)]


def test_a_table_has_what_was_measured_and_nothing_else() -> None:
    figure = FIGURES["leak"]
    runs = [{"row": 1, "arm": "stock", figure.value: 1.64}, {"row": 1, "arm": "series", figure.value: 1.2}]
    _, _, *lines = table(figure, runs)
    assert lines == [
        "| 8 equal writes a second | stock |  | 1.64 | holds |",
        "| 8 equal writes a second | series |  | 1.2 | does not hold |",
    ]


def test_the_kept_runs_give_the_published_tables() -> None:
    page = (HERE / "README.md").read_text(encoding="utf-8")
    assert {kernel for kernel, _, _ in KEPT} >= {"6.12", "6.1", "6.1-debian"}
    for kernel, figure, runs in KEPT:
        assert f"{figure.title} (Linux {kernel})" in page
        assert "\n".join(table(figure, runs)) in page


def test_these_claims_do_not_hold_and_the_page_says_so() -> None:
    missed = {
        (kernel, figure.name, row.name, arm)
        for kernel, figure, runs in KEPT
        for index, row in enumerate(figure.rows)
        for arm in (row.bands.keys() | row.changes.keys())
        if (found := values(figure, runs, index, arm))
        and verdict(row, arm, found, changes(figure, runs, index, arm)) == "does not hold"
    }
    assert missed == {
        ("6.12", "table-4.1", "10 ms", "slush"),
        ("6.12", "figure-4.5", "100 ms", "series"),
        ("6.12", "figure-4.5", "100 ms", "burst, stock"),
        ("6.12", "figure-4.5", "10 ms", "series"),
        ("6.12", "figure-4.5", "10 ms", "burst, stock"),
        ("6.12", "figure-5.1", "slices of 1 us", "series"),
        ("6.1", "table-4.1", "100 ms", "stock"),
        ("6.1", "table-4.1", "50 ms", "stock"),
        ("6.1", "table-4.1", "10 ms", "stock"),
        ("6.1", "table-4.1", "10 ms", "config"),
        ("6.1", "table-4.1", "10 ms", "slush"),
        ("6.1", "figure-4.3", "10 ms", "series"),
        ("6.1", "figure-4.5", "100 ms", "series"),
        ("6.1", "figure-4.5", "100 ms", "burst, stock"),
        ("6.1", "figure-4.5", "10 ms", "series"),
        ("6.1", "figure-4.5", "10 ms", "burst, stock"),
        ("6.1", "figure-5.1", "slices of 1 us", "series"),
        ("6.1-debian", "table-4.1", "50 ms", "stock"),
        ("6.1-debian", "figure-4.5", "10 ms", "burst, stock"),
    }


@pytest.mark.parametrize("kernel", ["6.12", "6.1"])
def test_of_each_write_the_series_hands_out_nothing(kernel: str) -> None:
    figure, runs = next((figure, runs) for of, figure, runs in KEPT if (of, figure.name) == (kernel, "leak"))
    for row in range(1, len(figure.rows)):
        assert min(values(figure, runs, row, "stock")) > 1.5
        assert max(values(figure, runs, row, "series")) < 1.03
