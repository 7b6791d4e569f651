"""A plain `dasec explain` is answered without click, and no differently."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dasec.commands.entry import plain_explain
from dasec.model import Knob
from dasec.service.status import INTERVAL_NS

from .command import dasec
from .periods import busy_history
from .recording import holding, recorded, told_status, wrote


@pytest.mark.parametrize(
    ("arguments", "plain"),
    [
        (["explain", "web"], ("web", None, False)),
        (["explain", "--json", "web", "--record", "r"], ("web", "r", True)),
        (["explain"], None),
        (["explain", "--help"], None),
        (["explain", "--record", "r"], None),
        (["explain", "web", "--record"], None),
        (["explain", "web", "db"], None),
        (["explain", "web", "--json", "--json"], None),
        (["explain", "--", "web"], None),
        (["explain", "web", "--directory", "/run/x"], None),
        (["top"], None),
        ([], None),
    ],
)
def test_only_a_plain_call_is_answered_without_click(
    arguments: list[str], plain: tuple[str, str | None, bool] | None
) -> None:
    assert plain_explain(arguments) == plain


@pytest.mark.parametrize("workload", ["hungry", "hungri"])
@pytest.mark.parametrize("way", [[], ["--json"]])
def test_a_plain_call_and_one_through_click_answer_the_same(
    tmp_path: Path, workload: str, way: list[str]
) -> None:
    first, *rest = busy_history(10)
    recorded(
        tmp_path / "r", [wrote(first, Knob.WEIGHT, 1126, "tsa.raise"), *(holding(e, 1126) for e in rest)]
    )
    plainly = dasec("explain", workload, "--record", tmp_path / "r", *way)
    assert dasec("explain", workload, "--record", tmp_path / "r", "--directory", tmp_path, *way) == plainly


def test_a_plain_call_whose_reader_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    recorded(tmp_path / "r", busy_history(2))
    command = f"{sys.executable} -m dasec explain hungry --record {tmp_path / 'r'} | true"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""


HEAVY = {"click", "dataclasses", "inspect", "pydantic", "pydantic_core", "rich", "dasec.model", "dasec.commands.cli"}


@pytest.mark.parametrize("said", [False, True])
def test_a_plain_call_loads_nothing_that_takes_long(tmp_path: Path, said: bool) -> None:
    recorded(tmp_path / "r", busy_history(2))
    told_status(tmp_path, tmp_path / "r")
    record = None if said else str(tmp_path / "r")
    program = (
        f"import sys; before = set(sys.modules); from dasec.commands.explain import answer\n"
        f"answer('calm', {record!r}, {str(tmp_path)!r}, {INTERVAL_NS}, as_json=True)\n"
        f"import dasec.commands.entry; print(*set(sys.modules) - before)"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not HEAVY & set(loaded.stdout.split())
