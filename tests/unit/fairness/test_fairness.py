"""From planted runs to what each workload got of its entitlement. Nothing is measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from dasec.demo.arms import CONTROL, NONE
from dasec.demo.results import RunResult, TenantResult
from dasec.demo.scenario import Timing
from dasec.load import latencies
from experiments.fairness.analysis import Entitled, Kept, summarise
from experiments.fairness.plots import draw
from experiments.fairness.report import report
from experiments.fairness.scenarios import CONTESTS
from experiments.fairness.wish import ARMS, POLICY, Block, Done, Wish, add, blocks_of, plan_of, read

WISH = Wish(tuple(CONTESTS), ("flat", "vm"), 6, Timing(4.0, 1.0, 0.6), 2, 7)
HOST = {"kernel": "6.x", "cpus": 2, "cpu_model": "none"}
NOTHING = latencies([])


def run(block: Block, arm: str, cores: tuple[float, float]) -> RunResult:
    """Both workloads use so many cores."""
    names = [tenant.name for tenant in CONTESTS[block.contest].scenario(2).tenants]
    tenants = [
        TenantResult(name, NOTHING, 0.0, 0, 0, 0, used, 0.0) for name, used in zip(names, cores, strict=True)
    ]
    return RunResult(arm, block.repetition, tuple(tenants), 0.0, 0.01, 1.0, 0.0, 0.0, 4.0, {})


def planted(lost: float, repetitions: int = 6) -> list[Done]:
    """Under the policy the first workload has that part less; the plain host varies by a percent."""
    found = []
    for number in range(repetitions):
        block = Block("fanout", "flat", number, ARMS)
        noise = 1 + 0.01 * (number % 2)
        cores = {NONE: 1.0 * noise, CONTROL: 1.0, POLICY: 1.0 - lost}
        found.append(Done(block, tuple(run(block, arm, (cores[arm], 2 - cores[arm])) for arm in ARMS)))
    return found


@pytest.mark.parametrize(
    ("lost", "kept"),
    [(0.0, Kept.KEPT), (0.02, Kept.OPEN), (0.1, Kept.LOST)],
    ids=["nothing", "just as much as allowed", "a tenth"],
)
def test_who_loses_more_than_two_percent_has_lost(lost: float, kept: Kept) -> None:
    one, other = summarise(planted(lost))
    assert (one.workload, other.workload) == ("fanout", "batch")
    assert one.kept is kept
    assert other.kept is Kept.KEPT
    assert one.policy.ratio == pytest.approx((1 - lost) / 1.0025, rel=1e-3)
    assert one.control.low < one.control.ratio < one.control.high


@pytest.mark.parametrize("contest", CONTESTS)
@pytest.mark.parametrize("cores", [1, 2, 5])
def test_in_every_contest_both_want_all_cores(contest: str, cores: int) -> None:
    for tenant in CONTESTS[contest].build(cores):
        options = dict(tenant.options)
        endless = int(options["background"]) if float(options["background-rate"]) > 10_000 else 0
        turns = int(options["helpers"]) // 2 if options.get("variant") == "pretend" else 0
        bursts = float(options["background-rate"]) * float(options.get("peer-us", 0)) / 1e6
        assert endless + turns + bursts * int(options["background"]) >= cores


def test_every_block_is_there_once_and_its_seed_is_not_that_of_another() -> None:
    blocks = list(blocks_of(WISH))
    assert len({(one.contest, one.layout, one.repetition) for one in blocks}) == len(blocks) == 8 * 2 * 6
    assert all(set(one.arms) == set(ARMS) for one in blocks)
    assert len({plan_of(WISH, one).seed for one in blocks}) == 8 * 2


def test_what_is_kept_is_read_again_and_a_torn_line_is_not(tmp_path: Path) -> None:
    file = tmp_path / "new" / "runs.jsonl"
    (done, *_) = planted(0.0)
    add(file, done.block, done.runs)
    with file.open("ab") as torn:
        torn.write(b'{"block": ')
    assert read(file) == (done,)
    add(file, done.block, done.runs)
    assert read(file) == (done, done)


def test_the_report_names_the_loser_and_shows_a_picture(tmp_path: Path) -> None:
    done = planted(0.1)
    found: tuple[Entitled, ...] = summarise(done)
    page = report(found, HOST, draw(found, tmp_path))
    assert "| flat | `fanout` | fanout | 1.002 | 0.995 (" in page
    assert page.count("LOST |") == 1
    assert (tmp_path / "fairness.png").stat().st_size > 5000
