"""A folder of results belongs to one experiment at a time."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from dasec.errors import ExitStatus, Refusal
from experiments.command import command
from experiments.run.alone import PROBE, alone_in

ROOT = Path(__file__).resolve().parents[3]
GUESTS = str(ROOT / "experiments/studies/testbed/quick.toml")


def refused(*arguments: str) -> Refusal:
    done = CliRunner().invoke(command, arguments)
    assert isinstance(done.exception, Refusal), done.exception
    assert len(done.exception.lines) == 1
    return done.exception


def test_a_second_experiment_into_a_folder_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    with alone_in(folder):
        found = refused("run", GUESTS, "--out", str(folder))
        assert found.status is ExitStatus.FAILED
        assert found.lines[0].startswith(f"{folder}: an experiment writes there already")
        assert folder.is_dir()
    with alone_in(folder):
        pass


def test_a_folder_that_stays_empty_is_gone_and_one_with_results_is_not(tmp_path: Path) -> None:
    with alone_in(tmp_path / "empty"):
        pass
    with alone_in(tmp_path / "full"):
        (tmp_path / "full" / "asked.json").touch()
    assert [one.name for one in tmp_path.iterdir()] == ["full"]


def test_a_folder_that_cannot_be_made_is_one_line_before_anything_is_built(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    found = refused("run", GUESTS, "--out", str(tmp_path / "file" / "out"))
    assert found.status is ExitStatus.USAGE
    assert found.lines[0].endswith("Not a directory: name another place")


def test_a_page_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "asked.json").write_text(json.dumps({"wish": {"loads": ["idle"]}, "host": {}}))
    (tmp_path / "file").touch()
    (tmp_path / PROBE).mkdir()
    page = tmp_path / "file" / "page.html"
    for arguments in (
        ["report", str(tmp_path)],
        ["compare", str(tmp_path), str(tmp_path), "--html", str(page)],
    ):
        found = refused(*arguments)
        assert found.status is ExitStatus.USAGE
        assert found.lines[0].endswith(": name another place")
