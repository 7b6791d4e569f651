"""The paper map names tests and symbols that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
MAP = (REPOSITORY / "docs" / "paper-map.md").read_text(encoding="utf-8")


def sources(folder: str) -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in (REPOSITORY / folder).rglob("*.py"))


def symbols() -> set[str]:
    """The last part of every name in the second column: `rla.sources.parts_of_sources` → parts_of_sources."""
    rows = [line.split("|") for line in MAP.splitlines() if line.startswith("| ") and line.count("|") == 5]
    quoted = [name for row in rows for name in re.findall(r"`([^`]+)`", row[2])]
    return {name.split(".")[-1] for name in quoted if re.fullmatch(r"[\w.]+", name)}


@pytest.mark.parametrize("start", sorted(set(re.findall(r"\btest_\w+(?!\.py)\b(?!\.py)", MAP))))
def test_every_test_that_the_map_names_exists(start: str) -> None:
    assert re.search(rf"def {start}", sources("tests"))


@pytest.mark.parametrize("file", sorted(set(re.findall(r"\btest_\w+\.py\b", MAP))))
def test_every_file_that_the_map_names_exists(file: str) -> None:
    assert list((REPOSITORY / "tests").rglob(file))


@pytest.mark.parametrize("symbol", sorted(symbols()))
def test_every_symbol_that_the_map_names_exists(symbol: str) -> None:
    assert re.search(rf"\b{symbol}\b", sources("daemon"))
