"""The paper's Figure 3 from the records that a testbed's experiment kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dasec.lab.kit.bench import record_name
from experiments.places.counted.kernels import PATCHED
from experiments.plan.testbed import Shapes, Workload
from experiments.results.waiting import KEPT, PICTURE, publish_waiting, read, waiting_table

VCPUS = [[1, number, 1, f"bg-{number}" if number < 4 else f"helper-{number}", None] for number in range(16)]
HEADER = {"dasec_record": 2, "workloads": [{"name": "vm-0", "vcpus": VCPUS}]}


def look(ready: int, running: int = 0, first: int = 0) -> dict[str, object]:
    states = ["ready"] * ready + ["running"] * running
    return {"usage": [[number, 1, 1, 1, state, 0, []] for number, state in enumerate(states, first)]}


LOAD = Workload("bursts", 16, (9.0,))
ASKED = Shapes(
    cpus=16,
    kernel=PATCHED,
    workload=(LOAD,),
    ratios=(1.0,),
    policies=("watched", "critical"),
    repetitions=2,
    records=True,
)
(CELL,) = (cell.name for cell in ASKED.cells.possible)


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    place = tmp_path / "records" / CELL
    place.mkdir(parents=True)
    for arm, repetition, looks in (
        ("watched", 0, [look(1), look(0, 2), look(1, first=4)]),
        ("watched", 1, [look(1, 4)]),
        ("critical", 0, [look(0, 3)]),
    ):
        lines = map(json.dumps, [HEADER, *looks])
        (place / record_name(arm, repetition)).write_text("\n".join(lines), encoding="utf-8")
    return tmp_path


def test_all_repetitions_of_an_arm_count_and_arms_without_a_daemon_have_no_record(measured: Path) -> None:
    publish_waiting(ASKED, measured)
    found = read(measured / KEPT)[CELL]
    assert list(found) == ["watched", "critical"]
    assert (found["watched"].any.looks, found["watched"].any.counts) == (4, {15: 2, 11: 1})
    assert (found["critical"].any.looks, found["critical"].any.total) == (1, 0)
    assert (measured / PICTURE).stat().st_size > 0


def test_background_that_is_ready_keeps_no_request_waiting(measured: Path) -> None:
    publish_waiting(ASKED, measured)
    serving = read(measured / KEPT)[CELL]["watched"].serving
    assert (serving.looks, serving.counts) == (4, {15: 1})


def test_a_table_says_how_often_and_how_often_nearly_all_wait(
    measured: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    publish_waiting(ASKED, measured)
    (_, _, watched, critical) = waiting_table(read(measured / KEPT)).splitlines()
    assert watched == f"| {CELL} | watched | 4 | 75 % | 67 % | 25 % | 100 % |"
    assert critical == f"| {CELL} | critical | 1 | 0 % | – | 0 % | – |"
    assert watched in capsys.readouterr().out


def test_without_records_nothing_is_written(tmp_path: Path) -> None:
    publish_waiting(ASKED, tmp_path)
    assert list(tmp_path.iterdir()) == []
