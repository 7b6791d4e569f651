"""What docs/architecture.md says of the package's shape is so."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.docs.markdown import table_under

from .source import PACKAGE, all_sources, imports
from .test_layers import FLOOR_OF, arrows

PAGE = (PACKAGE.parent / "docs/architecture.md").read_text(encoding="utf-8")
MAY_DRIFT = 0.1
"""A module more or a line less is no reason to touch the page; a tenth is."""

LONGEST_WALK = 15


@cache
def graph() -> dict[str, set[str]]:
    """Each module, by its path, and those that it imports."""
    path_of = {f"dasec.{source.module}".rstrip("."): source.path for source in all_sources()}
    return {
        source.path: {path_of[name] for _, name in imports(source) if name in path_of} - {source.path}
        for source in all_sources()
    }


def circle(modules: dict[str, set[str]]) -> list[str]:
    """Modules that import one another in a circle, if any do."""
    try:
        TopologicalSorter(modules).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def upwards() -> Iterator[tuple[str, str]]:
    for source in all_sources():
        for one, other in arrows(source) if source.module else ():
            if FLOOR_OF[other] > FLOOR_OF[one]:
                yield source.path, other


@cache
def measured() -> dict[str, tuple[int, ...]]:
    """The rows of the page's table as they are now. An `__init__.py` that says nothing is no module."""
    lengths = [source.line_count for source in all_sources() if source.line_count > 1]
    return {
        "modules": (len(lengths),),
        "lines of a module: median, longest": (round(statistics.median(lengths)), max(lengths)),
        "imports upwards, circles": (len(list(upwards())), len(circle(graph()))),
    }


@pytest.mark.parametrize("row", measured())
def test_the_table_of_the_package_is_true(row: str) -> None:
    said = {cells[0]: cells[1] for cells in table_under(PAGE, "of the package")}
    numbers = tuple(map(int, re.findall(r"\d+", said[row])))
    assert numbers == pytest.approx(measured()[row], rel=MAY_DRIFT), (
        f"docs/architecture.md: {measured()[row]}"
    )


def test_a_circle_would_be_found() -> None:
    assert circle({"a": {"b"}, "b": {"a"}, "c": {"a"}})
    assert circle({"a": {"b"}, "c": {"a"}}) == []


def walk() -> list[str]:
    """The files of the page's walk from the kernel to a knob, below daemon/."""
    return [cells[1].strip("`").removeprefix("daemon/") for cells in table_under(PAGE, "step")]


def test_one_counter_gets_from_the_kernel_to_a_knob_in_few_files() -> None:
    files = walk()
    assert len(set(files)) == len(files) <= LONGEST_WALK
    assert [file for file in files if not (PACKAGE / file).is_file()] == []


def test_no_file_of_the_walk_is_beside_the_way() -> None:
    """Each imports, or is imported by, another one of it; a BPF program has its decoder beside it."""
    files = {file for file in walk() if file.endswith(".py")}
    ways = {file: {to for to in graph()[file] if to in files} for file in files}
    reached = {file for one in ways.values() for file in one} | {file for file in files if ways[file]}
    assert files - reached == set()
    programs = [Path(file) for file in walk() if file.endswith(".bpf.c")]
    assert [one for one in programs if str(one).replace(".bpf.c", ".py") not in files] == []
