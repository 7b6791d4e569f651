"""From planted results to the page, the tables and the comparison of two folders. Nothing is measured."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from dasec.errors import Refusal
from dasec.lab.kit.bench import record_name, run_name
from dasec.lab.kit.results import RunResult, TenantResult
from dasec.lab.kit.tree import Tree
from dasec.lab.load_tool import latencies
from dasec.linux.cgroupfs import Hierarchy
from experiments.drivers.catalogue import DRIVERS
from experiments.plan.blocks import Block
from experiments.plan.points import Cell, Gap, arms_of, cells_of
from experiments.plan.schema import Experiment
from experiments.results.compare import differences_of, page_of, text_of
from experiments.results.export import COMPARISONS, DOCUMENT, RUNS, export
from experiments.results.folder import Conditions, note, raw_folder, read, store_in
from experiments.results.occasions import occasions
from experiments.results.page import write_page
from experiments.results.store import BEGUN, Asked
from experiments.run import knobs
from experiments.run.applications import side

EXPERIMENT = Experiment.model_validate_json(
    json.dumps(
        {
            "title": "Cache <and> batch",
            "claim": "It is faster.",
            "source": "section 0",
            "policies": ["critical"],
            "ratios": [2, 3],
            "repetitions": 4,
            "cores": 2,
            "mix": [
                {
                    "name": "both",
                    "workload": [
                        {"driver": "memcached", "count": 1, "rate_per_s": 100},
                        {"driver": "matrixmul"},
                    ],
                }
            ],
        }
    )
)
HOST: dict[str, object] = {"kernel": "6.x", "cpus": 2, "cpu_model": "planted"}
CELLS = cells_of(EXPERIMENT, 2, DRIVERS, {}).possible
GAP = Gap("masstree: tailbench-masstree", "TAILBENCH_DIR: not set")
FASTER = {"none": 1.0, "none-again": 1.01, "critical": 0.5}
LINE = {
    "workloads": [
        {"name": "memcached-0", "vcpus": [[0], [0], [0]]},
        {"name": "matrixmul-0", "vcpus": [[0], [0]]},
    ],
    "usage": [[0, 1, 1, 1, "ready", 0, []], [1, 1, 1, 1, "running", 0, []], [3, 1, 1, 1, "running", 0, []]],
}


def run(cell: Cell, arm: str, repetition: int, slower: float) -> RunResult:
    times = latencies(int(1e6 * slower * (1 + 0.01 * repetition + 0.01 * step)) for step in range(20))
    served = TenantResult("", times, 100.0, *(0, 0, 0), cores=0.2, blame_s=slower)
    worked = TenantResult("", latencies(()), 50 / slower, *(0, 0, 0), cores=0.9)
    tenants = tuple(
        TenantResult(
            instance.name,
            kind.latencies,
            kind.throughput_per_s,
            *(0, 0, 0),
            cores=kind.cores,
            blame_s=kind.blame_s,
        )
        for instance in cell.instances
        for kind in [served if instance.workload.driver == "memcached" else worked]
    )
    return RunResult(arm, repetition, tenants, 0.0, 0.01, 0.8, 0.0, 0.0, 5.0, {"applied": 3})


def planted(folder: Path, slower: float = 1.0) -> Path:
    store = store_in(folder)
    store.begin(Asked(EXPERIMENT, HOST))
    note(folder, Conditions((GAP,), ("needs.load: a load average of 0.5 at most, it is 3",)))
    for cell in CELLS:
        for repetition in range(EXPERIMENT.repetitions):
            arms = arms_of(EXPERIMENT, cell)
            runs = [run(cell, arm, repetition, slower * FASTER[arm]) for arm in arms]
            store.add(Block(cell, repetition, arms), runs)
            for arm in arms:
                raw = raw_folder(folder, cell) / run_name(arm, repetition)
                raw.mkdir(parents=True)
                weights = (700, 100) if arm == "critical" else (100, 100)
                knobs.write(
                    raw, [knobs.ThreadKnobs("memcached-0", "w", each, 3_000_000, 2) for each in weights]
                )
                if arm == "critical":
                    record = raw.parent / record_name(arm, repetition)
                    record.write_text(json.dumps(LINE) + "\n" + '{"cut sho', encoding="utf-8")
    return folder


def test_the_page_needs_nothing_else_and_names_what_is_missing(tmp_path: Path) -> None:
    page = write_page(read(planted(tmp_path))).read_text(encoding="utf-8")
    sources = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert len(sources) == 6
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    text = re.sub("<[^>]*>", " ", page)
    assert "Cache &lt;and&gt; batch" in text
    assert "TAILBENCH_DIR: not set" in text
    assert "a load average of 0.5 at most, it is 3" in text
    assert re.search(r"both-r2-vm\s+memcached\s+critical\s+0.50 \[0.50, 0.50\]", text)
    assert re.search(r"both-r2-vm\s+matrixmul\s+critical\s+–\s+–\s+2.00 \[2.00, 2.00\]\s+gain", text)
    assert re.search(r"both-r2-vm\s+critical\s+7\s+3 – 3\s+0%", text)


def test_the_tables_have_every_run_and_every_comparison(tmp_path: Path) -> None:
    export(read(planted(tmp_path)))
    with (tmp_path / RUNS).open(encoding="utf-8") as file:
        runs = list(csv.DictReader(file))
    assert len(runs) == 3 * 4 * sum(len(cell.instances) for cell in CELLS)
    assert {one["mean_ms"] == "" for one in runs if one["workload"] == "matrixmul"} == {True}
    with (tmp_path / COMPARISONS).open(encoding="utf-8") as file:
        compared = [
            one for one in csv.DictReader(file) if one["metric"] == "mean" and one["part"] == "memcached"
        ]
    assert {(one["ratio"], one["place"]) for one in compared} == {("2.0", "cgroup"), ("3.0", "cgroup")}
    assert {round(float(one["over_none"]), 2) for one in compared if one["arm"] == "critical"} == {0.5}
    assert {(one["arm"], one["verdict"]) for one in compared} == {("none-again", ""), ("critical", "gain")}
    document = json.loads((tmp_path / DOCUMENT).read_text(encoding="utf-8"))
    assert document["conditions"]["gaps"] == [{"what": GAP.what, "why": GAP.why}]
    assert {row["part"] for row in document["rows"]} == {"all", "memcached", "matrixmul"}


def test_two_folders_are_compared_arm_by_arm(tmp_path: Path) -> None:
    found = differences_of(side({}, planted(tmp_path / "a")), side({}, planted(tmp_path / "b", slower=1.2)))
    by_arm = {(one.arm, one.metric): one for one in found.differences if one.part == "memcached"}
    assert by_arm["none", "mean"].effect.ratio == pytest.approx(1.2, rel=0.01)
    assert by_arm["critical", "p99"].verdict == "harm"
    assert "| both-r2-vm | memcached | critical | mean, ms |" in text_of(found)
    assert "src=" not in page_of(found)


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="holds no results"):
        read(tmp_path)


def test_finished_runs_of_an_unfinished_block_are_kept_and_the_block_remembers(tmp_path: Path) -> None:
    store, cell = store_in(tmp_path), CELLS[0]
    block, other = Block(cell, 0, ("none", "none-again")), Block(cell, 1, ("none",))
    store.begin(Asked(EXPERIMENT, HOST))
    first = run(cell, "none", 0, 1.0)
    store.keep(block, first)
    with (tmp_path / BEGUN).open("ab") as file:
        file.write(b'{"cell": "cut sho')
    assert store.begun(block) == (first,)
    assert store.begun(other) == ()
    second = run(cell, "none-again", 0, 1.0)
    store.keep(block, second)
    assert store.begun(block) == (first, second)
    store.add(block, [first, second], interrupted=True)
    assert store.begun(block) == ()
    (done,) = store.done()
    assert (done.runs, done.interrupted) == ((first, second), True)


def test_a_thread_that_has_ended_has_no_knobs(tmp_path: Path) -> None:
    hierarchy = Hierarchy(1, str(tmp_path), "/")
    assert knobs.look(Tree(1, tmp_path), hierarchy, {"a-0": [(2**22 + 1, 2**22 + 1, "gone")]}) == []


def test_threads_in_no_group_of_ours_have_no_ratio_of_weights() -> None:
    found = [knobs.spread([[knobs.ThreadKnobs("a-0", "w", one, 3_000_000, 2)]], 2) for one in (None, 1024)]
    assert [one and one.weight_ratio for one in found] == [None, 1]


def test_an_occasion_is_a_look_at_which_somebody_waits_and_somebody_is_ready(tmp_path: Path) -> None:
    record = tmp_path / "record"
    idle = {"usage": [[3, 1, 1, 1, "ready", 0, []], [4, 1, 1, 1, "running", 0, []]]}
    record.write_text("\n".join(map(json.dumps, [{"dasec_record": 2}, LINE, idle])), encoding="utf-8")
    found = occasions([record], frozenset({"memcached-0"}))
    assert (dict(found.counts), found.looks) == ({1: 1}, 2)
    assert found.cumulative() == ((0, 0.0), (1, 1.0))
    assert occasions([record], frozenset({"matrixmul-0"})).counts == {}
