"""What is published of Debian's servers in counted guests is what was kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dasec.lab.kit.arms import NONE
from dasec.lab.kit.results import RunResult
from experiments.plan.cells import Cell as Asked
from experiments.plan.file import told_in
from experiments.plan.servers import Servers
from experiments.results.analysis import JUDGED
from experiments.run.planned import experiment_in
from experiments.studies.servers.published import (
    RESULTS,
    Cell,
    batch,
    cells,
    serving,
    table,
    words,
)

HERE = Path(__file__).resolve().parents[3] / "experiments/studies/servers"
README = (HERE / "README.md").read_text(encoding="utf-8")
FIRST_PAGE = (HERE.parents[2] / "README.md").read_text(encoding="utf-8")
KEPT = tuple(cells())


def test_the_kept_runs_give_the_published_tables() -> None:
    assert KEPT
    assert table(KEPT) in README
    assert words(KEPT) in README


def asked_by(cell: Cell) -> Asked:
    """Its file."""
    file = HERE / f"{cell.file}.toml"
    found = experiment_in(told_in(file), file)
    assert isinstance(found, Servers)
    (one,) = found.cells.possible
    return one


@pytest.mark.parametrize("cell", KEPT, ids=lambda cell: str(cell.file))
def test_a_kept_cell_is_of_a_file_that_is_there(cell: Cell) -> None:
    asked = asked_by(cell)
    assert {one.cell for one in cell.blocks} == {asked.name}
    assert abs(cell.busy - asked.utilisation) < 0.1, "request_us says how busy a cell is"


@pytest.mark.parametrize("cell", KEPT, ids=lambda cell: str(cell.file))
def test_every_arm_answered_all_requests_and_did_all_work(cell: Cell) -> None:
    for run in (run for block in cell.blocks for run in block.runs):
        assert all(one.errors == one.unfinished == 0 for one in run.tenants)
        requests, cores = cell.done(run.arm)
        assert requests == pytest.approx(1, abs=0.02)
        assert cores == pytest.approx(1, abs=0.06)  # a Redis that goes first has saved more by then


def test_a_table_says_of_an_arm_and_of_the_plain_kernel_how_many_requests_failed() -> None:
    cell = KEPT[0]

    def failing(run: RunResult) -> RunResult:
        first, *others = run.tenants
        return replace(run, tenants=(replace(first, errors={NONE: 1, "scx": 2}.get(run.arm, 0)), *others))

    some = [replace(block, runs=tuple(map(failing, block.runs))) for block in cell.blocks]
    plain, scx = len(cell.runs(NONE)), 2 * len(cell.runs("scx"))
    told = words((replace(cell, blocks=tuple(some)),))
    assert f"; failed: {scx}, plain {plain}" in told
    assert f"; failed: 0, plain {plain}" in told
    assert "failed" not in words(KEPT)


def test_what_the_pages_say_of_each_server_is_so() -> None:
    said = {
        "gluoncv-busy": {"critical": "nothing", "oracle": "nothing", "scx": "gain"},
        "go-busy": {"critical": "gain", "oracle": "nothing", "scx": "gain"},
        "go-full": {"critical": "nothing", "oracle": "nothing", "scx": "gain"},
        "img-dnn-busy": {"critical": "nothing", "oracle": "nothing", "scx": "gain"},
        "java-busy": {"critical": "gain", "oracle": "gain", "scx": "gain"},
        "masstree-busy": {"critical": "gain", "oracle": "gain", "scx": "gain"},
        "memcached-busy": {"critical": "gain", "oracle": "gain", "scx": "gain"},
        "nginx-busy": {"critical": "gain", "oracle": "gain", "scx": "gain"},
        "postgres-busy": {"critical": "gain", "oracle": "gain", "scx": "gain"},
        "redis-busy": {"critical": "gain", "oracle": "gain", "scx": "gain"},
        "redis-shared": {"critical": "gain", "oracle": "gain", "scx": "gain"},
        "rocksdb-busy": {"critical": "gain", "oracle": "gain", "scx": "gain"},
        "silo-busy": {"critical": "gain", "oracle": "gain", "scx": "gain"},
        "xapian-busy": {"critical": "nothing", "oracle": "gain", "scx": "gain"},
    }
    assert {cell.file: {arm: cell.word(arm) for arm in said[cell.file]} for cell in KEPT} == said


TIMED = ("img-dnn-busy", "masstree-busy", "silo-busy", "xapian-busy")
"""TailBench's: nobody wakes their threads but timers."""

WOKEN = tuple(cell for cell in KEPT if cell.file not in TIMED)


def over_plain(cell: Cell, of: str = "mean", arm: str = "scx") -> list[float]:
    """Of each VM, on our own scheduler or under another arm."""
    (plain,), (ours,) = cell.runs("none"), cell.runs(arm)
    return [b.value(of) / a.value(of) for a, b in zip(serving(plain), serving(ours), strict=True)]


def test_no_vm_has_more_of_its_mean_or_p99_on_our_own_scheduler_than_the_page_says() -> None:
    timed = tuple(cell for cell in KEPT if cell.file in TIMED)
    said = []
    for some, vms in ((WOKEN, 80), (timed, 32)):
        assert sum(len(over_plain(cell)) for cell in some) == vms
        said += [f"{max(max(over_plain(cell, of)) for cell in some):.2f}" for of in JUDGED]
    assert f"one has {said[0]} of its mean, one {said[1]} of its p99; these are the most" in README
    assert f"Of 32 with TailBench's they are {said[2]} and {said[3]}" in README


@pytest.mark.parametrize("file", ["masstree-busy", "silo-busy"])
def test_no_vm_with_these_has_more_under_critical_than_the_page_says(file: str) -> None:
    (cell,) = (cell for cell in KEPT if cell.file == file)
    mean, p99 = (max(over_plain(cell, of, "critical")) for of in JUDGED)
    said = f"Under `critical` no VM has more than {mean:.2f} of its mean or {p99:.2f} of its p99"
    assert said in next(row for row in README.splitlines() if row.startswith(f"| {file.split('-')[0]} |"))


@pytest.mark.parametrize(("file", "times"), [("postgres-busy", 1.40), ("go-full", 2.45)])
def test_the_page_says_which_vm_is_worse_off_under_critical(file: str, times: float) -> None:
    (cell,) = (cell for cell in KEPT if cell.file == file)
    assert max(over_plain(cell, "p99", "critical")) == pytest.approx(times, abs=0.005)
    assert f"{times:.2f} times" in README


@pytest.mark.parametrize(
    ("file", "mean", "p99"),
    [
        ("gluoncv-busy", 0.445, 0.475),
        ("img-dnn-busy", 0.715, 0.335),
        ("java-busy", 0.445, 0.255),
        ("masstree-busy", 0.475, 0.135),
        ("postgres-busy", 0.35, 0.34),
        ("rocksdb-busy", 0.265, 0.055),
        ("xapian-busy", 0.625, 0.405),
    ],
)
def test_no_vm_with_one_of_these_has_more_than_the_page_says(file: str, mean: float, p99: float) -> None:
    (cell,) = (cell for cell in KEPT if cell.file == file)
    assert max(over_plain(cell)) < mean
    assert max(over_plain(cell, "p99")) < p99


def test_gluoncvs_requests_take_as_long_as_the_page_says_and_are_as_few() -> None:
    (cell,) = (cell for cell in KEPT if cell.file == "gluoncv-busy")
    (plain,), (ours,) = cell.runs("none"), cell.runs("scx")
    means_ms = [one.value("mean") / 1e6 for one in ours.tenants]
    p99s_ms = [one.value("p99") / 1e6 for one in ours.tenants]
    assert sum(means_ms) / len(means_ms) == pytest.approx(13.1, abs=0.06)
    assert sum(p99s_ms) / len(p99s_ms) == pytest.approx(25, abs=0.5)
    assert cell.plain_ms("mean") == pytest.approx(32.6, abs=0.05)
    assert cell.plain_ms("p99") == pytest.approx(80, abs=0.5)
    counts = [one.latencies.count for one in plain.tenants]
    assert (min(counts), max(counts)) == (48, 80)
    serving = sum(one.cores - (one.background_cores or 0.0) for one in plain.tenants)
    requests_per_s = sum(one.throughput_per_s for one in plain.tenants)
    assert 1000 * serving / requests_per_s == pytest.approx(21, abs=0.5)


def test_where_the_host_is_less_busy_java_gains_on_our_own_scheduler_only() -> None:
    (less,) = cells(RESULTS / "less-busy")
    assert less.busy == pytest.approx(0.60, abs=0.005)
    for arm, mean, p99, word in (
        ("critical", 1.04, 1.07, "nothing"),
        ("oracle", 0.94, 0.90, "nothing"),
        ("scx", 0.68, 0.36, "gain"),
    ):
        found = (less.ratio(arm, "mean").ratio, less.ratio(arm, "p99").ratio)
        assert found == pytest.approx((mean, p99), abs=0.005), arm
        assert less.word(arm) == word


SEEDS = tuple(cells(RESULTS / "seeds"))


def test_other_seeds_give_the_published_table_and_no_vm_loses_in_any() -> None:
    assert table(SEEDS) in README
    for cell in SEEDS:
        assert cell.word("scx") == "gain"
        assert max(over_plain(cell)) < 0.58
        assert max(over_plain(cell, "p99")) < 0.36
        requests, cores = cell.done("scx")
        assert requests == pytest.approx(1, abs=0.03)
        assert cores == pytest.approx(1, abs=0.06 if cell.file.startswith("redis") else 0.03)  # as above


def test_two_more_seeds_of_go_say_the_same() -> None:
    found = [cell for cell in SEEDS if cell.file.startswith("go-full")]
    for cell, mean, p99 in zip(found, (0.21, 0.20), (0.09, 0.08), strict=True):
        assert cell.ratio("scx", "mean").ratio == pytest.approx(mean, abs=0.005)
        assert cell.ratio("scx", "p99").ratio == pytest.approx(p99, abs=0.005)
        assert max(over_plain(cell)) < 0.335


def test_no_vm_with_redis_waits_long_with_any_seed() -> None:
    redis = [cell for cell in (*KEPT, *SEEDS) if cell.file.startswith("redis-busy")]
    assert len(redis) == 3
    for cell in redis:
        assert max(one.value("p99") for one in cell.runs("scx")[0].tenants) < 0.55e6


HALF = tuple(cells(RESULTS / "half"))


def test_half_busy_hosts_give_the_published_tables() -> None:
    assert table(HALF) in README
    assert words(HALF) in README


def test_where_the_host_is_half_busy_all_gain_on_our_own_scheduler_and_no_vm_loses() -> None:
    for cell, mean, p99 in zip(HALF, (0.57, 0.83, 0.84), (0.08, 0.49, 0.31), strict=True):
        assert cell.word("scx") == "gain"
        assert cell.ratio("scx", "mean").ratio == pytest.approx(mean, abs=0.005)
        assert cell.ratio("scx", "p99").ratio == pytest.approx(p99, abs=0.005)
        assert max(max(over_plain(cell)), max(over_plain(cell, "p99"))) < 0.905
        assert cell.done("scx") == pytest.approx((1, 1), abs=0.015)
        assert cell.word("critical") == ("gain" if cell.file == "memcached-half" else "nothing")


@pytest.mark.parametrize("cell", HALF, ids=lambda cell: str(cell.file))
def test_a_half_busy_cell_is_of_a_file_that_is_there(cell: Cell) -> None:
    asked = asked_by(cell)
    assert {one.cell for one in cell.blocks} == {asked.name}
    assert 0.4 < cell.busy < 0.66


BESIDE_BATCH = tuple(cells(RESULTS / "beside"))


def test_servers_beside_batch_work_give_the_published_tables() -> None:
    assert table(BESIDE_BATCH) in README
    assert batch(BESIDE_BATCH) in README


def test_beside_batch_work_both_gain_on_our_own_scheduler_which_does_no_less_of_it() -> None:
    go, memcached, nginx, postgres, redis, rocksdb = BESIDE_BATCH
    for cell, mean, p99, done in (
        (go, 0.53, 0.15, 1.01),
        (memcached, 0.345, 0.06, 1.06),
        (nginx, 0.80, 0.43, 1.00),
        (postgres, 0.49, 0.32, 1.11),
        (redis, 0.40, 0.10, 1.12),
        (rocksdb, 0.64, 0.10, 1.00),
    ):
        found = (cell.ratio("scx", "mean").ratio, cell.ratio("scx", "p99").ratio)
        assert found == pytest.approx((mean, p99), abs=0.005)
        assert cell.batch_done("scx").ratio == pytest.approx(done, abs=0.005)
        assert (cell.word("scx"), cell.word("critical"), cell.word("oracle")) == (
            "gain",
            "nothing",
            "nothing",
        )


def test_beside_batch_work_no_vm_has_more_on_our_own_scheduler_than_the_page_says() -> None:
    means, p99s = (
        [ratio for cell in BESIDE_BATCH for ratio in over_plain(cell, metric)] for metric in JUDGED
    )
    said = f"**No VM of the {len(means)} has more** than {max(means):.2f} of its mean or {max(p99s):.2f}"
    assert said in README
    postgres = over_plain(BESIDE_BATCH[3], "p99")
    assert f"differ: {min(postgres):.2f} to {max(postgres):.2f} of p99" in README


def test_requests_of_half_a_second_gain_nothing_on_our_own_scheduler_as_the_page_says() -> None:
    (sphinx,) = cells(RESULTS / "long")
    assert table((sphinx,)) in README
    assert words((sphinx,)) in README
    assert (sphinx.word("scx"), sphinx.word("critical")) == ("nothing", "harm")
    mean, p99 = (sphinx.ratio("critical", metric).ratio for metric in JUDGED)
    assert f"Under `critical` it has {mean:.2f} of the mean and {p99:.2f} of p99" in README
    assert {vm.latencies.count for run in sphinx.runs("scx") for vm in serving(run)} == {33}
