"""What is said of the host after an experiment on it, however that ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from dasec.errors import ExitStatus, Refusal
from dasec.lab.kit.errors import Interrupted, failure
from experiments.places import ground

OUT = Path("out")


@pytest.fixture(params=[[], ["/a: weight 2, was 1"]])
def changed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = request.param
    monkeypatch.setattr(ground, "look", lambda: None)
    monkeypatch.setattr(ground, "changes", lambda before, after: found)
    return found


def interrupted() -> None:
    raise Interrupted


def refused() -> None:
    raise failure("a guest did not come up")


def warnings(changed: list[str]) -> str:
    return "".join(f"warning: host not as before: {line}\n" for line in changed)


def test_who_is_interrupted_is_told_of_the_host_what_is_so(
    changed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    host = "the host is not as before" if changed else "the host is as before"
    kept = "; out keeps what was finished: the same command goes on"
    for folder, more in ((OUT, kept), (None, "")):
        with pytest.raises(Refusal) as caught:
            ground.leaving_as_before(folder, interrupted)
        assert caught.value.lines == (f"interrupted: {host}{more}",)
        assert caught.value.status is ExitStatus.FAILED
        assert capsys.readouterr().out == warnings(changed)


def test_where_nothing_of_the_host_changes_it_is_told_what_is_kept() -> None:
    with pytest.raises(Refusal) as caught:
        ground.keeping(OUT, interrupted)
    assert caught.value.lines == ("interrupted: out keeps what was finished: the same command goes on",)
    assert caught.value.status is ExitStatus.FAILED
    assert ground.keeping(OUT, lambda: 3) == 3


def test_a_measurement_that_fails_is_looked_after_as_well(
    changed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(Refusal, match="a guest did not come up"):
        ground.leaving_as_before(OUT, refused)
    assert capsys.readouterr().out == warnings(changed)


def test_one_that_ends_well_says_only_what_changed(
    changed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    ground.leaving_as_before(OUT, lambda: None)
    assert capsys.readouterr().out == warnings(changed)
