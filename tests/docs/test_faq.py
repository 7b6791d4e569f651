"""Every question of docs/faq.md has a test, none is missing; whichever test the docs name by file exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
FAQ = (REPOSITORY / "docs/faq.md").read_text(encoding="utf-8")
OTHERS = [(REPOSITORY / f"docs/{name}.md").read_text(encoding="utf-8") for name in ("operations", "security")]
QUESTIONS = 39
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def rows() -> list[tuple[list[int], str]]:
    """The numbers of each row, and the row."""
    found = re.findall(r"^\| ([\d, ]+) \|(.*)\|$", FAQ, re.MULTILINE)
    return [([int(number) for number in numbers.split(",")], row) for numbers, row in found]


def test_every_question_has_its_row_once() -> None:
    assert sorted(number for numbers, _ in rows() for number in numbers) == list(range(1, QUESTIONS + 1))


def test_whatever_applies_has_a_test() -> None:
    open_ones = {number for numbers, row in rows() if not NAMED.search(row) for number in numbers}
    assert open_ones == {7, 9, 39}


@pytest.mark.parametrize(("file", "test"), sorted(set(NAMED.findall("".join([FAQ, *OTHERS])))))
def test_every_test_that_is_named_is_there(file: str, test: str) -> None:
    assert re.search(rf"^def {test}\(", (REPOSITORY / file).read_text(encoding="utf-8"), re.MULTILINE)
