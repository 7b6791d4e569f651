"""The house has floors: a part imports what stands below it, and nothing above."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from .source import PACKAGE, Source, all_sources, imports

FLOORS = (
    {"errors", "settings", "parts", "flow", "model"},
    {"roster", "period", "gap", "budget", "linux", "bandwidth"},
    {"entitlement", "policy", "log", "bpf", "knobs"},
    {"tsa", "reservations", "safety"},
    {"rla", "rcr", "critical", "guard", "placement", "plan", "hosts"},
    {"rivals", "paper"},
    {"policies"},
    {"record", "config"},
    {"loop", "workloads"},
    {"metrics"},
    {"service", "lab"},
    {"commands"},
    {"__main__"},
)
FLOOR_OF = {part: floor for floor, parts in enumerate(FLOORS) for part in parts}
REPOSITORY = PACKAGE.parent


def part_of(module: str) -> str:
    return module.split(".")[0]


def arrows(source: Source) -> set[tuple[str, str]]:
    """From the part that a file belongs to, to those that it imports."""
    found = {name.split(".")[1] for _, name in imports(source) if name.startswith("dasec.")}
    return {(part_of(source.module), to) for to in found & FLOOR_OF.keys()}


def test_every_part_has_a_floor() -> None:
    assert {part_of(source.module) for source in all_sources()} - {""} == set(FLOOR_OF)


@pytest.mark.parametrize(
    "source", [source for source in all_sources() if source.module], ids=lambda source: source.path
)
def test_no_arrow_goes_up_or_to_a_neighbour(source: Source) -> None:
    wrong = {
        (one, other) for one, other in arrows(source) if one != other and FLOOR_OF[other] >= FLOOR_OF[one]
    }
    assert wrong == set()


def test_only_commands_import_the_lab() -> None:
    others = [source for source in all_sources() if part_of(source.module) not in ("lab", "commands")]
    assert [one.path for one in others if "lab" in {to for _, to in arrows(one)}] == []


@pytest.mark.parametrize("folder", ["daemon", "guests", "experiments", "vm-images"])
def test_nothing_but_tests_imports_tests(folder: str) -> None:
    assert [
        path
        for path in (REPOSITORY / folder).rglob("*.py")
        if "tests" in {name.split(".")[0] for name in _names(path)}
    ] == []


def test_guests_know_nothing_of_experiments() -> None:
    for path in (REPOSITORY / "guests").rglob("*.py"):
        assert "experiments" not in {name.split(".")[0] for name in _names(path)}, path


def _names(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        name
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom) and not node.level
            else []
        )
    }
