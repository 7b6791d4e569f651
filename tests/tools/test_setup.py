"""tools/setup tells a person without root what to install, in one line."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

NEEDED = ("bash", "cat", "cksum", "dirname", "env", "flock", "tr")


@pytest.fixture
def bare_path(tmp_path: Path) -> Path:
    """A PATH of a machine without compiler and memcached, used by somebody who is not root."""
    for name in NEEDED:
        found = shutil.which(name)
        assert found is not None
        (tmp_path / name).symlink_to(found)
    (tmp_path / "python3").symlink_to(Path(sys.base_prefix) / "bin/python3")
    user = tmp_path / "id"
    user.write_text("#!/bin/sh\necho 1000\n")
    user.chmod(0o755)
    return tmp_path


def setup(repository: Path, path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [repository / "tools/setup", *arguments]
    return subprocess.run(
        command, env={"PATH": str(path)}, cwd="/", capture_output=True, text=True, check=False
    )


def test_missing_packages_are_named_in_one_line_and_nothing_is_installed(
    repository: Path, bare_path: Path
) -> None:
    done = setup(repository, bare_path)
    assert done.returncode == 3
    (line,) = done.stderr.splitlines()
    assert "as root: apt-get install gcc libc6-dev make memcached" in line


def test_an_unknown_argument_is_wrong_usage(repository: Path, bare_path: Path) -> None:
    done = setup(repository, bare_path, "everything-else")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
