"""A command beside a Docker of its own: what is refused before one is started."""

from __future__ import annotations

import pytest

from guests.engines.__main__ import HOST, USAGE, main


@pytest.mark.parametrize(("words", "status"), [([], USAGE), (["--help"], 0)])
def test_without_a_command_it_says_what_it_is(
    words: list[str], status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == status
    assert "python -m guests.engines COMMAND" in capsys.readouterr().out


def test_what_the_machine_lacks_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    assert main(["true"]) == HOST
    said = capsys.readouterr().err
    assert said.startswith("guests.engines: apt-get, ")
    assert said.endswith(": not found: install them\n")
    assert said.count("\n") == 1
