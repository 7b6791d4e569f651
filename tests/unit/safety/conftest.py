"""A journal of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dasec.safety.journal.journal import Journal

from .knobs_for_tests import open_journal


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def journal(place: Path) -> Iterator[Journal]:
    one = open_journal(place)
    yield one
    one.close()
