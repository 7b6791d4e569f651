"""Every file and every test that a page names is there, and every heading that code cites. Decisions tell
of their own time."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from .markdown import HEADING

REPOSITORY = Path(__file__).resolve().parents[2]
NOT_OURS = {".git", ".venv", "build", "results", "decisions"}
PAGES = sorted(
    page for page in REPOSITORY.rglob("*.md") if not NOT_OURS & set(page.relative_to(REPOSITORY).parts)
)
ROOTS = "daemon|tests|experiments|guests|tools|vm-images|packaging|kvm-patches|fleet"
PLACE = re.compile(rf"`((?:{ROOTS})/[\w./*-]*)(?:::(\w+))?`")
MADE = {"daemon/rivals/idle.py"}
"""What the reader makes."""

CITED = re.compile(r'docs/([\w-]+\.md),\s+(?:#\s+)?"([^"]+)"')
"""As `(docs/measurements.md, "Loans")`, or in two lines."""


def named(text: str) -> list[tuple[str, str]]:
    return [(place, test) for place, test in PLACE.findall(text) if place not in MADE]


@cache
def names_in(file: Path) -> frozenset[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef))


def missing(place: str, test: str) -> bool:
    found = list(REPOSITORY.glob(place.rstrip("/")))
    return not found or bool(test and test not in names_in(found[0]))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_every_file_and_test_that_a_page_names_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert [place for place in named(text) if missing(*place)] == []


def test_every_heading_that_code_cites_is_there() -> None:
    cited = {
        (page, re.sub(r"\s+#?\s*", " ", heading), file.name)
        for folder in ROOTS.split("|")
        for file in (REPOSITORY / folder).rglob("*.py")
        for page, heading in CITED.findall(file.read_text(encoding="utf-8"))
    }
    assert len(cited) > 20
    assert [one for one in sorted(cited) if one[1] not in headings_of(one[0])] == []


@cache
def headings_of(page: str) -> frozenset[str]:
    return frozenset(HEADING.findall((REPOSITORY / "docs" / page).read_text(encoding="utf-8")))
