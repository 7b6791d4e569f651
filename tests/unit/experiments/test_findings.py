"""What docs/findings.md says is what the raw runs beside it say."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from experiments.testbed.findings import by_cause, draw, over_none

PAGE = (Path(__file__).resolve().parents[3] / "docs/findings.md").read_text(encoding="utf-8")


def rows(first: str) -> list[str]:
    """The lines of tables that begin so, without the first cell."""
    return [line.split("|", 2)[2] for line in PAGE.splitlines() if line.startswith(f"| {first}")]


def text(value: float) -> str:
    return f"{value:.2f}".removeprefix("0")


@pytest.mark.parametrize(
    ("arm", "named"), [("dasec", "`dasec`"), ("critical", "`critical`"), ("oracle", "oracle")]
)
def test_each_policy_is_as_it_was_measured(arm: str, named: str) -> None:
    (row,) = rows(named)
    for ratios in over_none()[arm].values():
        both = ", ".join(map(text, ratios))
        assert f"{text(statistics.geometric_mean(ratios))} [{both}]" in row


@pytest.mark.parametrize("cause", ["bunching", "straggler", "bursts", "lock-holder", "stages"])
def test_each_cause_is_as_it_was_measured(cause: str) -> None:
    (row,) = rows(cause.replace("-", " "))
    for ratio in ("3", "9"):
        again = by_cause()[cause, ratio]
        told = ", ".join(f"{values[0]:.1f}" for values in again.values())
        noise = ", ".join(f"{values[1] / values[0]:.2f}" for values in again.values())
        assert f"{told} [{noise}]" in row


def test_the_pictures_are_drawn_from_them(tmp_path: Path) -> None:
    draw(tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {"findings-causes.png", "findings-headline.png"}
