"""The first page and the findings have of each server what its kept runs say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dasec.lab.kit.ratios import Estimate
from experiments.results.analysis import JUDGED
from experiments.studies.servers.published import RESULTS, Cell, cells

TOP = Path(__file__).resolve().parents[3]
KEPT = {cell.file: cell for cell in cells()}
LATER = {cell.file: cell for cell in cells(RESULTS / "present")}
(SPHINX,) = cells(RESULTS / "long")

BY_A_LATER_RULE = ("silo-busy",)
"""Of this the pages have our own scheduler by decision 0094 and later ones."""

FIRST_PAGE = {
    "memcached": KEPT["memcached-busy"],
    "Redis, saving": KEPT["redis-busy"],
    "nginx": KEPT["nginx-busy"],
    "PostgreSQL": KEPT["postgres-busy"],
    "TailBench's masstree": KEPT["masstree-busy"],
    "Go, 76 % busy": KEPT["go-busy"],
    "TailBench's sphinx": SPHINX,
}

FINDINGS = (
    "memcached-busy",
    "nginx-busy",
    "redis-busy",
    "redis-shared",
    "go-full",
    "go-busy",
    "java-busy",
    "postgres-busy",
    "rocksdb-busy",
    "gluoncv-busy",
    "masstree-busy",
    "silo-busy",
    "img-dnn-busy",
    "xapian-busy",
)
"""In the order of the table."""


def ours(cell: Cell) -> Cell:
    """Whose runs the pages have of our own scheduler."""
    return LATER[cell.file] if cell.file in BY_A_LATER_RULE else cell


@pytest.mark.parametrize("host", FIRST_PAGE)
def test_the_first_page_has_these_ratios(host: str) -> None:
    rows = [row.strip("| ").split(" | ") for row in (TOP / "README.md").read_text().splitlines()]
    ((word, said, mean, p99, _),) = (row for row in rows if len(row) == 5 and row[1].startswith(f"{host} ("))
    cell = FIRST_PAGE[host]
    assert word.strip("*") == cell.word("critical")
    assert [mean, p99] == [f"{cell.ratio('critical', of).ratio:.2f}" for of in JUDGED]
    assert re.findall(r"\d\.\d\d", said) == [f"{ours(cell).ratio('scx', of).ratio:.2f}" for of in JUDGED]


def told(word: str, found: Estimate) -> str:
    """As the findings have it."""
    ratio, low, high = (f"{one:.2f}".lstrip("0") for one in (found.ratio, found.low, found.high))
    return f"{word}: {ratio} [{low}, {high}]"


def test_the_findings_have_these_words_means_and_intervals() -> None:
    page = (TOP / "docs/findings.md").read_text(encoding="utf-8").partition("## Debian's own servers")[2]
    rows = [row.strip("| ").split(" | ")[1:] for row in page.partition("|---")[2].splitlines()[1:]]
    for row, name in zip(rows[: len(FINDINGS)], FINDINGS, strict=True):
        arms = [(KEPT[name], "critical"), (KEPT[name], "oracle"), (ours(KEPT[name]), "scx")]
        assert row == [told(cell.word(arm), cell.ratio(arm, "mean")) for cell, arm in arms], name
    assert set(FINDINGS) == set(KEPT)
