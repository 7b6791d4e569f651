"""Deciding is pure: the modules between observe and apply see values only, never a kernel or a clock."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from .source import Source, all_sources, imports, parse

PURE = (
    *(
        "model",
        "period",
        "entitlement",
        "policy",
        "policies",
        "paper",
        "settings",
        "roster",
        "plan",
        "budget",
        "gap",
    ),
    *("tsa", "rla", "rcr", "critical", "bandwidth", "guard", "placement", "reservations", "rivals"),
)
PURE_STDLIB = {
    "__future__",
    "collections.abc",
    "dataclasses",
    "enum",
    "fnmatch",
    "fractions",
    "functools",
    "itertools",
    "math",
    "operator",
    "statistics",
    "types",
    "typing",
}
IMPURE_CALLS = {
    *("open", "print", "input", "breakpoint"),
    *("exec", "eval", "compile", "__import__"),
    *("globals", "locals", "vars", "setattr", "delattr"),
}


def is_pure(module: str) -> bool:
    return module.split(".")[0] in PURE


def pure_sources() -> list[Source]:
    return [source for source in all_sources() if is_pure(source.module) and source.module]


def offences(source: Source) -> Iterator[str]:
    """What the file does that a pure module must not, one line each."""
    for line, name in imports(source):
        if not allowed(name):
            yield f"daemon/{source.path}:{line}: imports {name}"
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Global | ast.Nonlocal):
            yield f"daemon/{source.path}:{node.lineno}: keeps state outside its arguments"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IMPURE_CALLS:
            yield f"daemon/{source.path}:{node.lineno}: calls {node.func.id}()"
        if isinstance(node, ast.AsyncFunctionDef | ast.Await):
            yield f"daemon/{source.path}:{node.lineno}: waits"


def allowed(name: str) -> bool:
    if name == "dasec":
        return True
    if name.startswith("dasec."):
        return is_pure(name.removeprefix("dasec."))
    return any(name == pure or name.startswith(f"{pure}.") for pure in PURE_STDLIB)


@pytest.mark.parametrize("name", PURE)
def test_every_pure_module_exists(name: str) -> None:
    assert any(source.module.split(".")[0] == name for source in pure_sources())


@pytest.mark.parametrize("source", pure_sources(), ids=lambda source: source.path)
def test_a_pure_module_imports_and_calls_nothing_that_touches_the_world(source: Source) -> None:
    assert list(offences(source)) == []


@pytest.mark.parametrize(
    "text",
    [
        "import os",
        "import time",
        "from random import random",
        "import collections",
        "from ..linux import procfs",
        "from .. import log",
        "from ..hosts.host import Host",
        "def f() -> None:\n    open('x')",
        "def f() -> None:\n    global state\n    state = 1",
    ],
)
def test_the_purity_test_sees_an_offence(text: str) -> None:
    assert list(offences(parse(text, "tsa/rule.py")))


@pytest.mark.parametrize(
    "text",
    [
        "from __future__ import annotations",
        "from collections.abc import Mapping",
        "from ..model import Period",
        "from .. import entitlement",
        "from .parameters import TsaParameters",
        "import math",
    ],
)
def test_the_purity_test_lets_values_through(text: str) -> None:
    assert list(offences(parse(text, "tsa/rule.py"))) == []


WALL_CLOCK = {
    "metrics/exporter.py",  # Prometheus wants to know when the daemon started
    "workloads/libvirt/status_directory.py",  # a file's age; all are looked at once a second anyway
}
"""Who reads it, and why a jump does no harm."""


def test_no_period_goes_by_the_wall_clock_which_jumps() -> None:
    wall = {"time", "time_ns", "localtime", "gmtime", "ctime", "strftime"}
    found = {
        source.path
        for source in all_sources()
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Attribute) and node.attr in wall
        if isinstance(node.value, ast.Name) and node.value.id == "time"
    }
    named = {source.path for source in all_sources() for _, name in imports(source) if "datetime" in name}
    assert found | named == WALL_CLOCK
