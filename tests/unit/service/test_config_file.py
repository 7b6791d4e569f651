"""A configuration's file is read, or what is wrong with it as a file is one line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dasec.config.config import Config, ConfigError, load

WORKLOAD = '[[workload]]\nname = "a"\npids = [1]\n'


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"period_ms = \n", "not TOML: Invalid value (at line 1, column 13): mend that line"),
        (b"a = 1\na = 2\n", "not TOML: Cannot overwrite a value (at line 2, column 6)"),
        (b"name = '\xff'\n", "byte 8 is not UTF-8"),
    ],
)
def test_a_file_that_is_no_toml_is_one_line(tmp_path: Path, content: bytes, part: str) -> None:
    path = tmp_path / "c.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert len(caught.value.lines) == 1
    assert f"{path}: {part}" in caught.value.lines[0]


def test_a_file_without_an_end_is_one_line_and_takes_no_memory(tmp_path: Path) -> None:
    (tmp_path / "c.toml").touch()
    os.truncate(tmp_path / "c.toml", 1 << 40)
    with pytest.raises(ConfigError, match="has more than 16 MiB: give a shorter file"):
        load(tmp_path / "c.toml")


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file or directory: give a readable file"):
        load(tmp_path / "none.toml")


def test_a_file_that_may_keep_a_daemon_waiting_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "c.toml")
    with pytest.raises(ConfigError, match="is not a file that can be read again: give a readable file"):
        load(tmp_path / "c.toml")


def test_a_mark_before_the_first_byte_is_not_part_of_it(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text(WORKLOAD, encoding="utf-8-sig")
    assert isinstance(load(path), Config)


def test_a_good_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text(WORKLOAD)
    assert isinstance(load(path), Config)
