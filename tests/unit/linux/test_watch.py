"""Files that somebody wrote to."""

from __future__ import annotations

from pathlib import Path

import pytest

from dasec.linux.watch import FileWatch


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    paths = [tmp_path / name for name in ("one", "two")]
    for path in paths:
        path.write_text("1024")
    return [str(path) for path in paths]


def test_only_written_files_are_named_and_only_once(files: list[str]) -> None:
    watch = FileWatch()
    for file in files:
        watch.add(file)
    assert watch.written() == frozenset()
    Path(files[1]).write_text("1")
    Path(files[0]).read_text()
    assert watch.written() == {files[1]}
    assert watch.written() == frozenset()
    watch.close()


def test_a_dropped_file_is_not_named_any_more(files: list[str]) -> None:
    watch = FileWatch()
    for file in files:
        watch.add(file)
    Path(files[0]).write_text("1")
    watch.drop(files[0])
    assert watch.written() == frozenset()
    watch.drop(files[0])
    watch.close()


def test_a_missing_file_cannot_be_watched_and_that_is_no_loss(tmp_path: Path) -> None:
    watch = FileWatch()
    watch.add(str(tmp_path / "missing"))
    assert watch.complete
    watch.close()
    assert not watch.complete
