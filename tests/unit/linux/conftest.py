from __future__ import annotations

from pathlib import Path

import pytest

from .tree import Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)
