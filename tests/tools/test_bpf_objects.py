"""The committed BPF objects are what Debian's clang makes of the committed sources."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import refuse


def test_compiling_the_programs_again_gives_the_committed_objects(repository: Path, tmp_path: Path) -> None:
    if shutil.which("clang-14") is None or shutil.which("llvm-strip-14") is None:
        refuse("needs clang-14 and llvm-14")
    done = subprocess.run([repository / "tools/bpf", tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    folders = (repository / "daemon/bpf", repository / "tests/host/bpf")
    committed = {path.name: path.read_bytes() for folder in folders for path in folder.glob("*.o")}
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert made.keys() == committed.keys()
    changed = [name for name in made if made[name] != committed[name]]
    if changed:
        pytest.fail(f"run tools/bpf and commit {', '.join(changed)}", pytrace=False)
