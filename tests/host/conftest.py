"""What many tests of this kernel begin with, and end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.stage import MainlineStage

from .group import TestGroup
from .libvirtd import Libvirtd


@pytest.fixture(scope="session")
def libvirtd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Libvirtd]:
    """One for all tests: its first look at QEMU takes four seconds."""
    started = Libvirtd(tmp_path_factory.mktemp("libvirtd") / "log")
    yield started
    started.close()


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
