"""The linters as tests: one command, one verdict, the tool's own words on failure."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent
NOT_OURS = {".git", ".venv", ".typing", "build"}
SHELLS = {b"sh", b"bash", b"dash", b"env sh", b"env bash"}
PYTHON_SOURCES = ["setup.py", "daemon", "guests", "tests", "experiments", "vm-images"]


def complaints(repository: Path, *command: str) -> str:
    """What the tool printed; empty if it is content."""
    done = subprocess.run([BIN / command[0], *command[1:]], cwd=repository, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def shell_scripts(folder: Path) -> Iterator[Path]:
    """Every shell script below `folder`: by its suffix, or by its first line where it has none."""
    for path in sorted(folder.iterdir()):
        if path.name in NOT_OURS or path.is_symlink():
            continue
        if path.is_dir():
            yield from shell_scripts(path)
        elif path.suffix == ".sh" or (path.suffix == "" and has_shell_shebang(path)):
            yield path


def has_shell_shebang(path: Path) -> bool:
    with path.open("rb") as file:
        first_line = file.readline(80).strip()
    return first_line.startswith(b"#!") and first_line.rsplit(b"/", 1)[-1] in SHELLS


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(["ruff", "check", *PYTHON_SOURCES], id="ruff check"),
        pytest.param(["ruff", "format", "--check", *PYTHON_SOURCES], id="ruff format"),
        pytest.param(["mypy"], id="mypy strict"),
        pytest.param(["codespell"], id="codespell"),
    ],
)
def test_the_linter_has_nothing_to_say(repository: Path, command: list[str]) -> None:
    complaint = complaints(repository, *command)
    if complaint:
        pytest.fail(complaint, pytrace=False)


def test_shellcheck_has_nothing_to_say(repository: Path) -> None:
    scripts = [str(path.relative_to(repository)) for path in shell_scripts(repository)]
    assert "tools/setup" in scripts, "the search for shell scripts finds none"
    complaint = complaints(repository, "shellcheck", *scripts)
    if complaint:
        pytest.fail(complaint, pytrace=False)


def test_a_script_without_a_suffix_is_found_by_its_first_line(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("#!/usr/bin/env bash\ntrue\n")
    (tmp_path / "tool").write_text("#!/usr/bin/env python3\npass\n")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.sh").write_text("true\n")
    assert [path.name for path in shell_scripts(tmp_path)] == ["a.sh", "run"]
