"""The errands of a test run: done once, by whoever comes first; and the order of the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from guests.waiting import gone, wait_for
from tests.ahead import LOG, Ahead


@dataclass(frozen=True, slots=True)
class Count:
    """Adds a line to a file; its outcome is who did it."""

    file: Path

    def __call__(self) -> int:
        with self.file.open("a", encoding="ascii") as lines:
            lines.write("done\n")
        return os.getpid()


@dataclass(frozen=True, slots=True)
class Hang:
    """Starts a program that does not end, and says which."""

    file: Path

    def __call__(self) -> None:
        process = subprocess.Popen(["sleep", "3600"])
        unfinished = self.file.with_suffix(".new")
        unfinished.write_text(str(process.pid), encoding="ascii")
        unfinished.rename(self.file)
        process.wait()


@dataclass(frozen=True, slots=True)
class Fail:
    def __call__(self) -> None:
        raise RuntimeError("no such kernel")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "ahead"
    made.mkdir()
    return made


def test_an_errand_is_done_once_by_another_process_and_its_outcome_is_kept(
    folder: Path, tmp_path: Path
) -> None:
    ahead, errand = Ahead(folder), Count(tmp_path / "lines")
    ahead.start([errand])
    ahead.wait()
    assert ahead.result(errand) == ahead.result(Count(tmp_path / "lines")) != os.getpid()
    assert errand.file.read_text(encoding="ascii") == "done\n"
    assert [line.rstrip().endswith(f": {errand}") for line in ahead.took()] == [True]
    ahead.close()
    assert not folder.exists()


def test_an_errand_that_nobody_has_begun_is_done_now(folder: Path, tmp_path: Path) -> None:
    ahead = Ahead(folder)
    assert ahead.result(Count(tmp_path / "lines")) == os.getpid()


def test_an_errand_that_failed_fails_its_test_and_leaves_the_others_alone(
    folder: Path, tmp_path: Path
) -> None:
    ahead, other = Ahead(folder), Count(tmp_path / "lines")
    ahead.start([Fail(), other])
    ahead.wait()
    assert "RuntimeError: no such kernel" in (folder / LOG).read_text(encoding="utf-8")
    assert ahead.result(other) != os.getpid()
    with pytest.raises(RuntimeError, match="no such kernel"):
        ahead.result(Fail())


def test_nothing_of_an_errand_is_left_when_the_run_ends_before_it(folder: Path, tmp_path: Path) -> None:
    ahead, errand = Ahead(folder), Hang(tmp_path / "pid")
    ahead.start([errand])
    wait_for(errand.file.exists)
    ahead.close()
    wait_for(lambda: gone(int(errand.file.read_text(encoding="ascii"))))


RUN = """
import os, sys
from pathlib import Path
from tests.ahead import Ahead
from tests.tools.test_ahead import Hang
from guests.waiting import wait_for
errand = Hang(Path(sys.argv[2]))
Ahead(Path(sys.argv[1])).start([errand])
wait_for(errand.file.exists)
os._exit(9)
"""


def test_a_run_that_is_killed_leaves_nothing_either(repository: Path, folder: Path, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    subprocess.run([sys.executable, "-c", RUN, folder, pid], cwd=repository, check=False)
    wait_for(lambda: gone(int(pid.read_text(encoding="ascii"))))


ORDERED = """
import pytest
@pytest.mark.timing
def test_timing(): pass
@pytest.mark.vm
@pytest.mark.host
def test_guest(): pass
@pytest.mark.alone
@pytest.mark.host
def test_alone(): pass
@pytest.mark.host
def test_host(): pass
def test_cheap(): pass
"""


def collected(repository: Path, tmp_path: Path, *arguments: str) -> list[str]:
    """The tests of `ORDERED` that these arguments select, in the order of the run."""
    (tmp_path / "test_order.py").write_text(ORDERED, encoding="ascii")
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:randomly", *arguments]
    command += ["-p", "tests.conftest", "-c", str(repository / "pyproject.toml"), str(tmp_path)]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    return [line.rpartition("::")[2] for line in done.stdout.splitlines() if "::" in line]


def test_the_cheap_come_first_and_what_times_something_last(repository: Path, tmp_path: Path) -> None:
    found = collected(repository, tmp_path)
    assert found == ["test_cheap", "test_host", "test_guest", "test_timing", "test_alone"]


@pytest.mark.parametrize(
    ("part", "tests"),
    [
        ("cheap", ["test_cheap"]),
        ("host", ["test_host"]),
        ("alone", ["test_timing", "test_alone"]),
        ("guests", ["test_guest"]),
    ],
)
def test_each_part_of_the_suite_has_its_own_tests(
    repository: Path, tmp_path: Path, part: str, tests: list[str]
) -> None:
    assert collected(repository, tmp_path, f"--part={part}") == tests
