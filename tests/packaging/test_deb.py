"""The Debian package installs, works with nothing but Python, and purges without a trace."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from dasec.lab.load_tool import find_tool

pytestmark = pytest.mark.thorough
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def said(deb: Path) -> list[str]:
    """What the package said from its installation to its purge, in an overlay over this machine's root."""
    command = ["unshare", "--mount", "bash", str(HERE / "deb.sh"), str(deb), str(find_tool())]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def about(said: list[str], what: str) -> list[str]:
    return [line.removeprefix(f"{what}: ") for line in said if line.startswith(f"{what}: ")]


def test_the_installed_command_runs_and_its_default_configuration_manages_nobody(said: list[str]) -> None:
    assert any(line.startswith("dasec 0.") for line in said)
    (refused,) = about(said, "refused")
    assert "workload: is missing" in refused


def test_what_starts_the_daemon_itself_finds_the_package_it_came_from(said: list[str]) -> None:
    (line,) = about(said, "bench")
    assert line.startswith("2 vCPUs in 1 workloads")


def test_manual_and_completion_are_those_of_the_command(said: list[str]) -> None:
    assert about(said, "completed") == ["reload"]
    assert about(said, "manual")


def test_nothing_is_left_after_a_purge_not_even_of_an_enabled_service(said: list[str]) -> None:
    assert about(said, "enabled") == ["yes"]
    assert about(said, "left") == []
