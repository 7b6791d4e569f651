"""WYSIWYG's figure 1: the kept runs are what the page says."""

from __future__ import annotations

import json
from pathlib import Path

from experiments.studies.wysiwyg.sized import SETUPS, table, times_of

HOME = Path(__file__).parents[3] / "experiments/studies/wysiwyg"


def test_the_page_has_the_medians_of_the_kept_runs() -> None:
    runs = [json.loads(line) for line in (HOME / "results/sized.jsonl").read_text().splitlines()]
    page = (HOME / "README.md").read_text()
    lines = table({name: times_of(runs, name) for name in SETUPS}).splitlines()[2:]
    for line in lines:
        figures = [word.strip() for word in line.strip("| ").split("|")][1:]
        assert f"| {' | '.join(figures)} |" in page
