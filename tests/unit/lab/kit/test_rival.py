"""Schedulers of others: how an arm names one, and what it is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from dasec.errors import Refusal
from dasec.lab.kit.arms import rival_of
from dasec.lab.kit.rival import rival
from dasec.linux import sched_ext


def test_what_follows_the_name_of_a_rival_are_its_options() -> None:
    assert rival_of("rival:scx_flatcg") == ("scx_flatcg",)
    assert rival_of("rival:scx_layered --run-example") == ("scx_layered", "--run-example")


def test_a_rival_is_told_its_options_and_its_last_words_are_the_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sched_ext, "state", lambda: "disabled")
    program = tmp_path / "scx_other"
    program.write_text('#!/bin/sh\necho "told: $*"\nexit 1\n', encoding="utf-8")
    program.chmod(0o755)
    refused = pytest.raises(Refusal, match="told: --run-example")
    with refused, rival(program, ["--run-example"], tmp_path / "log"):
        pass
