"""A tree of groups that no other test, and no run of the kit, has."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeVar

from dasec.lab.kit.tree import Tree
from dasec.linux.cgroupfs import find_hierarchy

T = TypeVar("T", bound=Tree)


def own_tree(kind: type[T], what: str) -> T:
    """Of this kind; nothing is made yet."""
    hierarchy, name = find_hierarchy(), f"dasec-{what}-{os.getpid()}"
    return kind(hierarchy.version, Path(hierarchy.mount) / name, f"{hierarchy.root.rstrip('/')}/{name}")
