"""From planted results to the report, and what a folder of results keeps. Nothing is measured."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import pytest

from dasec.errors import ExitStatus, Refusal
from dasec.lab.kit.layout import GroupLayout
from dasec.lab.kit.results import RunResult, TenantResult
from dasec.lab.load_tool import Latencies, latencies
from experiments.plan.blocks import blocks_of
from experiments.plan.cells import Cell, Suite
from experiments.results.analysis import Summary, share_of, summarise
from experiments.results.plots import draw
from experiments.results.report import report
from experiments.results.rows import rows_of
from experiments.results.settling import course, courses
from experiments.results.store import RUNS, Asked, Done, Store

WISH = Suite(
    loads=("background", "latency-vm"),
    ratios=(4.0, 8.0),
    utilisations=(0.5, 0.8),
    layouts=(GroupLayout.FLAT,),
    repetitions=5,
    seconds=3.0,
    warmup_s=2.0,
    lead_s=0.8,
    cpus=2,
    seed=7,
    blame=True,
    records=False,
)
CELLS = WISH.cells.possible
BLOCKS = tuple(blocks_of(CELLS, WISH.arms, WISH.repetitions, WISH.seed))
HOST: dict[str, object] = {"kernel": "6.x"}


@cache
def planted(repetition: int, slower: float) -> Latencies:
    """Every request takes 1 ms and a bit, times `slower`."""
    return latencies(int(1e6 * slower * (1 + 0.02 * repetition + 0.01 * step)) for step in range(50))


NOTHING = latencies([])


def run(arm: str, repetition: int, cell: Cell, slower: float) -> RunResult:
    """Blame is `slower`, too."""
    tenants = tuple(
        TenantResult(
            tenant.name,
            planted(repetition, slower) if tenant.critical else NOTHING,
            50.0,
            *(0, 0, 0),
            cores=0.4,
            background_cores=0.2,
            blame_s=0.5 * slower if tenant.critical else 0.0,
        )
        for tenant in cell.scenario.tenants
    )
    return RunResult(arm, repetition, tenants, 0.0, 0.05, 0.8, 0.01, 0.0, 3.0, {})


def done(factors: Mapping[str, float]) -> tuple[Done, ...]:
    return tuple(
        Done(
            block.cell.name,
            block.repetition,
            tuple(run(arm, block.repetition, block.cell, factors[arm]) for arm in block.arms),
        )
        for block in BLOCKS
    )


def summaries(factors: Mapping[str, float]) -> Sequence[Summary[Cell]]:
    blocks = done(factors)
    return [one for cell in CELLS if (one := summarise(cell, blocks, WISH.arms))]


HELPED = {"none": 1.0, "none-again": 1.0, "critical": 0.55, "oracle": 0.5}
HARMED = {"none": 1.0, "none-again": 1.0, "critical": 1.2, "oracle": 0.99}


def test_a_policy_that_halves_latency_nearly_like_the_oracle_has_its_share() -> None:
    for one in summaries(HELPED):
        critical = one.arms["critical"]
        assert critical.ratios["mean"].ratio == pytest.approx(0.55, rel=0.01)
        assert critical.shares["mean"].share == pytest.approx(0.9, abs=0.02)
        assert critical.ratios["blame"].ratio == pytest.approx(0.55)
        assert critical.ratios["background"].ratio == pytest.approx(1.0)
        assert (critical.verdict, critical.goal) == ("gain", "share: met")
        assert one.arms["none-again"].verdict is None


@pytest.mark.parametrize("repetitions", [1, 2, 3])
def test_a_share_of_too_few_repetitions_is_likely_at_best_and_has_no_interval(repetitions: int) -> None:
    few = [one for one in done(HELPED) if one.repetition < repetitions]
    for one in (summarise(cell, few, WISH.arms) for cell in CELLS):
        assert one is not None
        critical = one.arms["critical"]
        assert (critical.goal, critical.shares["mean"].low) == ("share: likely", -math.inf)


def test_the_interval_of_a_share_covers_the_truth_nearly_as_often_as_it_says() -> None:
    chance, truth, trials, hits = random.Random(1), 0.8, 300, 0
    for _ in range(trials):
        best = [0.5 * math.exp(chance.gauss(0, 0.15)) for _ in range(5)]
        share = share_of([0.6 / 0.5 * one * math.exp(chance.gauss(0, 0.12)) for one in best], best)
        hits += share.low <= truth <= share.high
    assert 0.89 * trials <= hits <= 0.97 * trials


@pytest.mark.parametrize(("done_of_it", "verdict"), [(0.91, "gain"), (0.89, "harm")])
def test_a_gain_that_leaves_background_work_undone_is_harm(done_of_it: float, verdict: str) -> None:
    cell = CELLS[0]
    blocks = [
        replace(one, runs=tuple(map(partial(less_background, done_of_it), one.runs))) for one in done(HELPED)
    ]
    found = summarise(cell, blocks, WISH.arms)
    assert found is not None
    assert (found.arms["critical"].verdict, found.arms["oracle"].verdict) == (verdict, "gain")


def less_background(part: float, one: RunResult) -> RunResult:
    """Under `critical` so much of it."""
    if one.arm != "critical":
        return one
    tenants = (replace(each, background_cores=part * each.background_cores) for each in one.tenants)
    return replace(one, tenants=tuple(tenants))


def test_harm_where_nothing_is_to_be_gained_is_named() -> None:
    for one in summaries(HARMED):
        critical = one.arms["critical"]
        assert (critical.verdict, critical.goal, critical.shares) == ("harm", "no harm: MISSED", {})


def test_batch_workloads_have_no_voice_in_latency_but_in_cpu_time() -> None:
    cell = next(cell for cell in CELLS if cell.load == "latency-vm")
    blocks = [
        replace(
            one,
            runs=tuple(
                replace(each, tenants=(each.tenants[0], *starved(each.tenants[1:])))
                if each.arm == "critical"
                else each
                for each in one.runs
            ),
        )
        for one in done(HELPED)
    ]
    found = summarise(cell, blocks, WISH.arms)
    assert found is not None
    assert found.arms["critical"].ratios["mean"].ratio == pytest.approx(0.55, rel=0.01)
    assert found.arms["critical"].least_cpu == pytest.approx(0.5)


def starved(tenants: Sequence[TenantResult]) -> tuple[TenantResult, ...]:
    return tuple(replace(one, cores=one.cores / 2) for one in tenants)


def idle_under(arm: str, blocks: Sequence[Done]) -> list[Done]:
    """The first workload of each run gets nothing done under this arm."""
    return [
        replace(
            one,
            runs=tuple(
                replace(each, tenants=(replace(each.tenants[0], throughput_per_s=0.0), *each.tenants[1:]))
                if each.arm == arm
                else each
                for each in one.runs
            ),
        )
        for one in blocks
    ]


def test_a_workload_that_gets_nothing_done_under_an_arm_is_the_worst_off_and_not_left_out() -> None:
    cell = CELLS[0]
    (row,) = rows_of([cell], idle_under("critical", done(HELPED)), WISH.arms)
    critical = row.summary.arms["critical"].ratios
    assert critical["throughput"].ratio < 0.5
    assert critical["pace"].ratio == pytest.approx(1 / critical["throughput"].ratio)
    assert row.values("critical", "throughput")[0] < 0.5 * row.values("none", "throughput")[0]


def test_a_workload_that_gets_nothing_done_under_any_arm_is_not_asked() -> None:
    cell, blocks = CELLS[0], done(HELPED)
    for arm in WISH.arms:
        blocks = tuple(idle_under(arm, blocks))
    (row,) = rows_of([cell], blocks, WISH.arms)
    assert row.summary.arms["critical"].ratios["throughput"].ratio == pytest.approx(1)
    assert row.values("none", "throughput")[0] == pytest.approx(50)


def test_the_report_has_every_cell_and_policy_and_its_pictures(tmp_path: Path) -> None:
    found = summaries(HELPED)
    pictures = draw(WISH, found, tmp_path)
    assert set(pictures) == {"utilisation.png", "ratio.png", "shares.png", "blame.png", "background.png"}
    assert all((tmp_path / name).stat().st_size > 10_000 for name in pictures)
    page = report(WISH, found, ["x at ratio 1: has at least 4 vCPUs"], HOST, pictures)
    assert page.count("| background (E10) |") == 3 * 4 + 3 * 4  # three tables; one of them a row for each arm
    assert "Does not exist: x at ratio 1: has at least 4 vCPUs." in page
    assert "% of its gain" in page


def test_blocks_have_every_arm_once_and_repetitions_other_orders() -> None:
    assert len(BLOCKS) == len(CELLS) * WISH.repetitions == len({block.key for block in BLOCKS})
    assert {tuple(sorted(block.arms)) for block in BLOCKS} == {tuple(sorted(WISH.arms))}
    assert tuple(blocks_of(CELLS, WISH.arms, WISH.repetitions, WISH.seed)) == BLOCKS
    assert len({block.arms for block in BLOCKS}) > 5
    assert {block.repetition for block in BLOCKS[: len(CELLS)]} == {0}


def test_each_arm_of_a_cell_is_equally_often_the_first() -> None:
    blocks = blocks_of(CELLS, WISH.arms, len(WISH.arms), WISH.seed)
    first = Counter((block.cell.name, block.arms[0]) for block in blocks)
    assert first == dict.fromkeys(((cell.name, arm) for cell in CELLS for arm in WISH.arms), 1)


def test_experiments_of_one_cell_each_begin_with_different_arms() -> None:
    alone = [tuple(blocks_of((cell,), WISH.arms, 1, seed=1)) for cell in CELLS]
    assert len({block.arms[0] for (block,) in alone}) == len(WISH.arms)


def test_arrivals_depend_on_seed_and_cell_and_the_oracle_is_told_names() -> None:
    first, other = BLOCKS[0], next(block for block in BLOCKS if block.cell != BLOCKS[0].cell)
    again = replace(first, arms=first.arms[::-1])
    assert WISH.plan(first) == WISH.plan(again)
    assert WISH.plan(first).seed != WISH.plan(other).seed
    assert WISH.plan(first).seed != replace(WISH, seed=8).plan(first).seed
    assert "critical = ['helper-*', 'main']" in WISH.plan(first).settings["oracle"]


def test_finished_blocks_are_kept_and_a_line_that_was_cut_off_is_not(tmp_path: Path) -> None:
    store = Store(tmp_path / "new", Suite)
    assert (store.asked(), store.done()) == (None, ())
    store.begin(Asked(WISH, HOST))
    assert store.asked() == Asked(WISH, HOST)
    kept = done(HELPED)[:2]
    for block, one in zip(BLOCKS, kept, strict=False):
        store.add(block, one.runs)
    assert store.done() == kept
    file = store.folder / RUNS
    file.write_bytes(file.read_bytes()[:-20])
    assert store.done() == kept[:1]
    store.add(BLOCKS[1], kept[1].runs)
    assert store.done() == kept


def test_a_line_of_results_that_is_damaged_is_one_line_that_names_it(tmp_path: Path) -> None:
    store = Store(tmp_path, Suite)
    for block, one in zip(BLOCKS[:2], done(HELPED), strict=False):
        store.add(block, one.runs)
    file = store.folder / RUNS
    file.write_bytes(file.read_bytes() + b"nonsense\n")
    with pytest.raises(Refusal, match="line 3 is damaged: take it out") as caught:
        store.done()
    assert (caught.value.status, len(caught.value.lines)) == (ExitStatus.USAGE, 1)
    file.unlink()
    file.mkdir()
    with pytest.raises(Refusal, match="Is a directory: name another folder"):
        store.done()


def test_a_block_that_was_measured_once_more_counts_once_and_as_the_last_time(tmp_path: Path) -> None:
    store = Store(tmp_path, Suite)
    first, last = done(HELPED)[0], done(HARMED)[0]
    for one in (first, *done(HELPED)[1:3], last):
        store.add(next(block for block in BLOCKS if block.key == one.key), one.runs)
    assert store.done() == (last, *done(HELPED)[1:3])


def test_a_block_without_a_run_of_an_arm_is_one_line_that_names_it() -> None:
    cell, (first, *others) = CELLS[0], done(HELPED)
    blocks = [one for one in (first, *others) if one.cell == cell.name]
    short = replace(blocks[0], runs=tuple(run for run in blocks[0].runs if run.arm != "critical"))
    with pytest.raises(Refusal, match="repetition 1: has no run of critical, but of") as caught:
        summarise(cell, [short, *blocks[1:]], WISH.arms)
    assert (caught.value.status, len(caught.value.lines)) == (ExitStatus.USAGE, 1)


def test_a_folder_that_is_damaged_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "asked.json").write_text("{}")
    with pytest.raises(Refusal, match=r"asked\.json: cannot be read: name another folder"):
        Store(tmp_path, Suite).asked()


def record_of(folder: Path, bursts_ns: Sequence[int], weights: Sequence[tuple[int, int]]) -> Path:
    """A record of main and one background thread: what the latter computed and both weights, by period."""
    names = [[1, 1, 1, "main", "0-1"], [1, 2, 1, "bg-0", "0-1"]]
    lines: list[dict[str, object]] = [{"dasec_record": 2}]
    for number, (burst_ns, (main, other)) in enumerate(zip(bursts_ns, weights, strict=True)):
        knobs = [[0, [main, None, None]], [1, [other, None, None]]]
        first = {} if number else {"workloads": [{"name": "service-0", "vcpus": names}]}
        lines.append(first | {"usage": [[1, burst_ns, 0]], "knobs": knobs})
    file = folder / "0-critical.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in [*lines, {"workloads": []}]))
    return file


def test_settling_counts_periods_from_the_first_background_to_half_of_the_way(tmp_path: Path) -> None:
    even, near, end = (1024, 1024), (1500, 400), (1792, 256)
    record = record_of(tmp_path, [0, 0, 10**7, 0, 0, 0, 0], [even] * 4 + [near, end, end])
    found = course(record, "critical", ("main", "helper-*"))
    assert found.ratios == pytest.approx([1, 1, 3.75, 7, 7])
    assert found.settled == 2
    assert courses(tmp_path, ["critical", "oracle"], ("main",)) == (found,)


def test_a_look_of_several_periods_counts_as_so_many(tmp_path: Path) -> None:
    even, end = (1024, 1024), (1792, 256)
    record = record_of(tmp_path, [0, 10**7, 0], [even, even, end])
    lines = [json.loads(line) | {"length_ns": 5 * 80_000_000} for line in record.read_text().splitlines()]
    record.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert course(record, "critical", ("main",)).settled == 5


def test_who_never_prefers_anybody_never_settles(tmp_path: Path) -> None:
    record = record_of(tmp_path, [10**7] * 3, [(1024, 1024)] * 3)
    assert course(record, "critical", ("main",)).settled is None
