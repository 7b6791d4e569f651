"""`dasec verify` and `dasec restore` look where the host's last daemon had its journal."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dasec.commands.cli import commands
from dasec.errors import Refusal


def asked(*words: str | Path) -> Result:
    return CliRunner().invoke(commands, [*map(str, words)])


@pytest.fixture(autouse=True)
def no_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of other tests and daemons."""
    monkeypatch.setattr("dasec.safety.verify.our_groups", lambda: ())


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The one that is asked for, and the one that the last daemon had."""
    here, there = tmp_path / "here", tmp_path / "there"
    for place in (here, there):
        place.mkdir(mode=0o700)
    monkeypatch.setattr("dasec.commands.journal.elsewhere", lambda place: there if place == here else None)
    return here, there


def test_both_places_are_put_back(places: tuple[Path, Path]) -> None:
    here, there = places
    told = asked("restore", "--directory", here)
    assert told.exit_code == 0
    assert told.stdout.count("0 knobs put back") == 2
    assert told.stderr == f"dasec: the host's last daemon had its journal in {there}\n"


@pytest.mark.parametrize("spoilt", [0, 1])
def test_what_is_in_one_place_hides_nothing_of_the_other(spoilt: int, places: tuple[Path, Path]) -> None:
    here, _ = places
    journal = places[spoilt] / "journal"
    journal.write_text("no journal\n")
    told = asked("verify", "--directory", here)
    assert isinstance(told.exception, Refusal)
    assert str(journal) in told.stdout


def test_a_place_that_cannot_be_put_back_keeps_no_other_from_it(places: tuple[Path, Path]) -> None:
    here, _ = places
    here.chmod(0o777)
    told = asked("restore", "--directory", here)
    assert isinstance(told.exception, Refusal)
    assert f"{here} is open to others" in str(told.exception)
    assert told.stdout.startswith("0 knobs put back")


def test_a_place_that_somebody_else_made_anew_is_said_and_costs_nothing(places: tuple[Path, Path]) -> None:
    here, there = places
    there.chmod(0o777)
    for words in ("verify", "restore"):
        told = asked(words, "--directory", here)
        assert told.exit_code == 0
        assert "where nobody can look now" in told.stderr


def test_a_place_that_is_not_there_is_told(tmp_path: Path) -> None:
    nowhere = tmp_path / "none"
    assert (
        asked("restore", "--directory", nowhere).output == f"nothing to put back: {nowhere} does not exist\n"
    )
    assert asked("verify", "--directory", nowhere).output == (
        f"clean: the kernel holds what it should (no journal: {nowhere} does not exist)\n"
    )
