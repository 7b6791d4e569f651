"""What many tests of this kernel begin with, and end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.stage import MainlineStage

from .group import TestGroup


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[MainlineStage]:
    """The mainline host, writing."""
    made = MainlineStage(tmp_path, dry_run=False)
    yield made
    made.close()


@pytest.fixture
def group() -> Iterator[TestGroup]:
    """A heavy group of the test's own."""
    made = TestGroup("host")
    yield made
    made.close()
