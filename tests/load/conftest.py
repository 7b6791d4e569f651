"""Builds the tool once per test run."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ..conftest import refuse
from .tool import Running, Tool


@pytest.fixture(scope="session")
def tool(repository: Path) -> Tool:
    """dasec-load as its Makefile builds it."""
    folder = repository / "experiments" / "load"
    if shutil.which("make") is None or shutil.which("cc") is None:
        refuse("needs make and cc")
    with (folder / "Makefile").open() as lock:  # pytest -n has several processes, one folder
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(["make", "-C", folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return Tool(folder / "build" / "dasec-load")


@pytest.fixture
def start(tool: Tool) -> Iterator[Callable[..., Running]]:
    """Starts runs that a failing test does not leave behind."""
    runs: list[Running] = []

    def start_one(*arguments: str) -> Running:
        runs.append(tool.start(*arguments))
        return runs[-1]

    yield start_one
    for run in runs:
        run.kill()
