"""The figures on CPU limits: their table is whole, and claims hold if all values are in their bands."""

from __future__ import annotations

import pytest

from experiments.studies.bandwidth.figures import Figure, figures
from experiments.studies.bandwidth.guest import WORD_CHARACTERS, batches
from experiments.studies.bandwidth.report import table, verdict

FIGURES = figures()


@pytest.mark.parametrize("figure", FIGURES.values(), ids=FIGURES)
def test_every_claim_and_band_is_of_an_arm_and_every_run_fits_a_command_line(figure: Figure) -> None:
    for row in figure.rows:
        assert row.claims.keys() <= figure.arms.keys()
        assert row.bands.keys() <= figure.arms.keys()
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


def test_a_table_has_what_was_measured_and_nothing_else() -> None:
    figure = FIGURES["leak"]
    runs = [{"row": 1, "arm": "stock", figure.value: 1.64}, {"row": 1, "arm": "series", figure.value: 1.2}]
    _, _, *lines = table(figure, runs)
    assert lines == [
        "| 8 equal writes a second | stock |  | 1.64 | holds |",
        "| 8 equal writes a second | series |  | 1.2 | does not hold |",
    ]
