"""The paper's Figure 3 from the records that a testbed's experiment kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dasec.demo.run import record_name
from experiments.suite.store import Store
from experiments.testbed.experiment import Experiment, Workload
from experiments.testbed.kernels import PATCHED, TESTBED
from experiments.testbed.waiting import Seen, read, seen, waiting_table, write

VCPUS = [f"t{number}" for number in range(16)]
HEADER = {"dasec_record": 2, "workloads": [{"name": "vm-0", "vcpus": VCPUS}]}


def look(ready: int, running: int = 0) -> dict[str, object]:
    states = ["ready"] * ready + ["running"] * running
    return {"usage": [[number, 1, 1, 1, state, 0, []] for number, state in enumerate(states)]}


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    load = Workload("bursts", 16, (9.0,))
    asked = Experiment(16, PATCHED, (load,), (1.0,), ("watched", "critical"), repetitions=2, records=True)
    store = Store(tmp_path, Experiment, TESTBED)
    store.belonging_to(None, asked, {})
    place = tmp_path / "records" / asked.cells.possible[0].name
    place.mkdir(parents=True)
    for arm, repetition, looks in (
        ("watched", 0, [look(1), look(0, 2)]),
        ("watched", 1, [look(1, 4)]),
        ("critical", 0, [look(0, 3)]),
    ):
        lines = map(json.dumps, [HEADER, *looks])
        (place / record_name(arm, repetition)).write_text("\n".join(lines), encoding="utf-8")
    return tmp_path


def test_all_repetitions_of_an_arm_count_and_arms_without_a_daemon_have_no_record(measured: Path) -> None:
    watched, critical = seen(measured)
    assert (watched.arm, watched.ratio, watched.occasions.looks) == ("watched", 1.0, 3)
    assert watched.occasions.counts == {15: 1, 11: 1}
    assert (critical.arm, critical.occasions.total) == ("critical", 0)


def test_what_was_seen_is_kept_as_it_was(measured: Path, tmp_path: Path) -> None:
    file = tmp_path / "waiting.json"
    write(measured, file)
    assert read(file) == tuple(seen(measured))


def test_a_table_says_how_often_how_many_and_how_often_nearly_all(measured: Path) -> None:
    (_, _, watched, critical) = waiting_table(tuple(seen(measured))).splitlines()
    assert watched == "| watched | 67 % of 3 looks; 13.0 wait; more than 13 in 50 % |"
    assert critical == "| critical | 0 % of 1 looks |"


def test_a_folder_without_an_experiment_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="holds no experiment"):
        list[Seen](seen(tmp_path))
