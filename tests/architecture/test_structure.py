"""Shape of the package: one loop, small files, light processes, one copy of every class."""

from __future__ import annotations

import ast
import doctest
import importlib
import pkgutil
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator

import pytest

import dasec

from .source import Source, all_sources, imports

# loop.py is the daemon's only loop without an end. These read to the end of a file, a queue or a path,
# or never run inside a control period.
READS_TO_AN_END = (
    *("linux/affinity.py", "linux/cgroupfs.py", "linux/procfs.py", "linux/watch.py"),
    "workloads/processes.py",
)
OUTSIDE_THE_PERIOD = (
    *("lab/", "hosts/probe/reweight.py", "safety/keeper.py"),
    *("metrics/endpoint.py", "commands/top.py", "commands/scx.py"),
)
MAY_LOOP = ("loop.py", *READS_TO_AN_END, *OUTSIDE_THE_PERIOD)
FILE_CAP = 400
FILE_MEDIAN = 150
FUNCTION_CAP = 50

HEAVY = {
    *("click", "hdrh", "hypothesis", "libvirt", "matplotlib"),
    *("http", "numpy", "pydantic", "pydantic_core", "rich", "scipy"),
}
KEEPER_NEEDS = {
    *("dasec.safety", "dasec.linux", "dasec.knobs", "dasec.model"),
    *("dasec.bandwidth", "dasec.bandwidth.rates"),
}
KEEPER_PACKAGES = ("dasec.safety.", "dasec.linux.", "dasec.knobs.")


def loaded_by(module: str) -> set[str]:
    """Names of all modules that a fresh interpreter holds after importing `module`."""
    program = f"import sys, {module}; print(*sys.modules, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def top_level(modules: set[str]) -> set[str]:
    return {name.split(".")[0] for name in modules}


def long_functions(source: Source) -> Iterator[str]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_CAP:
                yield f"daemon/{source.path}:{node.lineno}: {node.name} has {length} lines"


def test_only_the_loop_loops_without_an_end() -> None:
    found = [
        f"daemon/{source.path}:{node.lineno}"
        for source in all_sources()
        if not source.path.startswith(MAY_LOOP)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.While)
    ]
    assert found == []


def test_the_loop_has_exactly_one_while() -> None:
    (loop,) = [source for source in all_sources() if source.path == "loop.py"]
    assert sum(isinstance(node, ast.While) for node in ast.walk(loop.tree)) == 1
    assert loop.line_count <= 120


def test_no_file_is_longer_than_the_cap_and_half_of_them_are_short() -> None:
    sizes = {source.path: source.line_count for source in all_sources() if source.line_count > 1}
    assert {path: size for path, size in sizes.items() if size > FILE_CAP} == {}
    assert statistics.median(sizes.values()) <= FILE_MEDIAN


def test_no_two_modules_have_a_class_of_the_same_name() -> None:
    homes = defaultdict(list)
    for source in all_sources():
        for node in source.tree.body:
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(source.path)
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


def test_no_function_is_longer_than_the_cap() -> None:
    assert [line for source in all_sources() for line in long_functions(source)] == []


NO_ROWS = ("", "knob", "table", "groups")
"""Of knobs/: what is not a kind of knob, and the groups that are our own."""


def test_only_a_host_names_a_kind_of_knob() -> None:
    rows = {source.module for source in all_sources() if source.path.startswith("knobs/")}
    rows -= {f"knobs.{one}".rstrip(".") for one in NO_ROWS}
    naming = {
        source.path
        for source in all_sources()
        for _, name in imports(source)
        if name.removeprefix("dasec.") in rows
    }
    assert {"hosts/threads/thread.py", "knobs/table.py"} <= naming
    assert {path for path in naming if not path.startswith(("hosts/", "knobs/"))} == set()


def test_the_keeper_imports_only_what_it_needs_to_restore() -> None:
    loaded = loaded_by("dasec.safety.keeper")
    assert top_level(loaded) & HEAVY == set()
    ours = {name for name in loaded if name.startswith("dasec.")}
    assert {
        name for name in ours if name not in KEEPER_NEEDS and not name.startswith(KEEPER_PACKAGES)
    } == set()


@pytest.mark.parametrize("module", ["dasec.commands.cli", "dasec.loop"])
def test_the_daemon_starts_without_the_libraries_that_it_does_not_use(module: str) -> None:
    assert top_level(loaded_by(module)) & (HEAVY - {"click", "pydantic", "pydantic_core"}) == set()


def test_every_module_imports_and_its_examples_hold() -> None:
    failed = []
    for found in pkgutil.walk_packages(dasec.__path__, "dasec."):
        if not found.name.endswith("__main__"):
            result = doctest.testmod(importlib.import_module(found.name))
            failed += [found.name] * result.failed
    assert failed == []
    assert "daemon" not in sys.modules, "a second copy of the package: somebody imported `daemon`"
