"""From planted runs to what each workload got of its entitlement. Nothing is measured."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasec.config.config import check
from dasec.critical.parameters import Fairness
from dasec.errors import Refusal
from dasec.lab.kit.arms import CONTROL, NONE
from dasec.lab.kit.controller import Managed, configuration
from dasec.lab.kit.layout import GroupLayout
from dasec.lab.kit.results import RunResult, TenantResult
from dasec.lab.load_tool import latencies
from experiments.plan.blocks import Block
from experiments.plan.contests import CONTESTS, POLICY, ContestCell, Contests
from experiments.plan.order import Order
from experiments.plan.terms import Place
from experiments.results.contests.analysis import Entitled, Kept, contest_and_layout, summarise
from experiments.results.contests.claims import divide, entitled
from experiments.results.contests.page import page
from experiments.results.contests.picture import draw
from experiments.results.store import Asked, Done, Store
from experiments.run.guests import task_for
from experiments.run.planned import blocks

WISH = Contests(
    contests=tuple(CONTESTS),
    place=Place.COUNTED,
    seconds=4.0,
    warmup_s=1.0,
    lead_s=0.6,
    cpus=2,
    seed=7,
)
ARMS = WISH.arms
HOST: dict[str, object] = {"kernel": "6.x", "cpus": 2}
NOTHING = latencies([])


def run(block: Block[ContestCell], arm: str, cores: tuple[float, float]) -> RunResult:
    """Both workloads use so many cores."""
    names = [tenant.name for tenant in CONTESTS[block.cell.contest].scenario(2).tenants]
    tenants = [
        TenantResult(name, NOTHING, 0.0, 0, 0, 0, used, 0.0) for name, used in zip(names, cores, strict=True)
    ]
    return RunResult(arm, block.repetition, tuple(tenants), 0.0, 0.01, 1.0, 0.0, 0.0, 4.0, {})


def planted(lost: float, repetitions: int = 6) -> list[Done]:
    """Under the policy the first workload has that part less; the plain host varies by a percent."""
    found = []
    for number in range(repetitions):
        block = Block(ContestCell("fanout", "flat", CONTESTS["fanout"].scenario(2)), number, ARMS)
        noise = 1 + 0.01 * (number % 2)
        cores = {NONE: 1.0 * noise, CONTROL: 1.0, POLICY: 1.0 - lost}
        runs = tuple(run(block, arm, (cores[arm], 2 - cores[arm])) for arm in ARMS)
        found.append(Done(block.cell.name, number, runs))
    return found


@pytest.mark.parametrize(
    ("lost", "kept"),
    [(0.0, Kept.KEPT), (0.02, Kept.OPEN), (0.1, Kept.LOST)],
    ids=["nothing", "just as much as allowed", "a tenth"],
)
def test_who_loses_more_than_two_percent_has_lost(lost: float, kept: Kept) -> None:
    one, other = summarise(planted(lost), 2)
    assert (one.workload, other.workload) == ("fanout", "batch")
    assert one.kept is kept
    assert other.kept is Kept.KEPT
    assert one.policy.ratio == pytest.approx((1 - lost) / 1.0025, rel=1e-3)
    assert one.control.low < one.control.ratio < one.control.high
    assert one.due == one.policy, "less than its weights entitle it to, without us already"


def test_who_has_more_than_its_weights_are_worth_may_lose_that() -> None:
    _, other = summarise(planted(-0.1), 2)
    assert other.entitlement == pytest.approx(0.8725)
    assert other.policy.ratio == pytest.approx(0.9 / 0.995, rel=1e-2)
    assert other.due.ratio == pytest.approx(0.9 / 0.8725)
    assert other.kept is Kept.KEPT


SHARED = [
    ("equals", "flat", (1.0, 1.0)),
    ("fanout", "flat", (0.255 + 1.745 / 2, 1.745 / 2)),
    ("fanout", "vm", (1.0, 1.0)),
    ("faker-lends", "flat", (4 / 3, 2 / 3)),
    ("sleepers", "flat", (1.0, 1.0)),
]


@pytest.mark.parametrize(("contest", "layout", "cores"), SHARED)
def test_workloads_are_entitled_to_what_their_threads_claim(
    contest: str, layout: str, cores: tuple[float, float]
) -> None:
    found = entitled(CONTESTS[contest].scenario(2), GroupLayout(layout))
    assert found is not None
    assert tuple(found.values()) == pytest.approx(cores)


@pytest.mark.parametrize("layout", GroupLayout)
def test_who_changes_its_role_has_no_entitlement_to_compute(layout: GroupLayout) -> None:
    assert entitled(CONTESTS["alternating"].scenario(2), layout) is None


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=9), st.floats(0.1, 4.0))
def test_nobody_gets_more_than_it_wants_and_nothing_wanted_is_left(wants: list[float], cores: float) -> None:
    found = divide(wants, cores)
    assert all(0 <= got <= want for got, want in zip(found, wants, strict=True))
    assert sum(found) == pytest.approx(min(cores, sum(wants)))
    unfilled = [got for got, want in zip(found, wants, strict=True) if got < want]
    assert all(got == pytest.approx(max(found)) for got in unfilled)


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
    every = blocks(WISH)
    assert len({one.key for one in every}) == len(every) == 8 * 2 * 6
    assert all(set(one.arms) == set(ARMS) for one in every)
    assert len({WISH.plan(one).seed for one in every}) == 8 * 2


@pytest.mark.parametrize("fairness", Fairness)
def test_the_daemon_is_told_the_fairness_that_was_asked_for(fairness: Fairness) -> None:
    wish = replace(WISH, fairness=fairness)
    told = wish.plan(blocks(wish)[0]).settings[POLICY]
    text = configuration(POLICY, [Managed("any", 1024, (1,))], told)
    assert check(tomllib.loads(text), "test").model_dump()["critical"]["fairness"] == fairness


def test_a_cell_is_found_again_by_its_name() -> None:
    for cell in WISH.cells.possible:
        assert contest_and_layout(cell.name) == (cell.contest, cell.layout)


def test_a_guest_is_told_its_block_in_a_word_of_its_own() -> None:
    wish = replace(WISH, pinned=True)
    words = {task_for(wish, block).word: block for block in blocks(wish)}
    assert len(words) == len(blocks(wish))
    for word, block in words.items():
        told = Order.read(word)
        assert (told.experiment, told.block) == (wish, block)


def test_pinned_and_other_results_are_never_mixed(tmp_path: Path) -> None:
    store = Store(tmp_path, Contests)
    store.begin(Asked(WISH, HOST))
    known = store.asked()
    assert known is not None
    store.check_options(known, replace(WISH, repetitions=8))
    with pytest.raises(Refusal, match=r"--out: holds results of other options \(pinned\)"):
        store.check_options(known, replace(WISH, pinned=True))


def test_the_records_of_a_block_that_is_measured_again_are_cleared(tmp_path: Path) -> None:
    store = Store(tmp_path, Contests)
    block, other = (Block(WISH.cells.possible[0], number, ARMS) for number in (1, 2))
    for one in (block, other):
        (store.records(one) / f"{one.repetition}-{POLICY}.jsonl").touch()
    store.records(block)
    assert [file.name for file in store.records(block).iterdir()] == [f"2-{POLICY}.jsonl"]


def test_the_report_names_the_loser_and_shows_a_picture(tmp_path: Path) -> None:
    done = planted(0.1)
    found: tuple[Entitled, ...] = summarise(done, 2)
    text = page(found, WISH, HOST, draw(found, tmp_path))
    assert "| flat | `fanout` | fanout | 6 | 1.127 | 1.002 | 0.995 (" in text
    assert text.count("LOST |") == 1
    assert '2 cores, threads where the kernel puts them, `fairness = "strict"`, 4 s after 1 s, seed 7' in text
    assert (tmp_path / "fairness.png").stat().st_size > 5000


def test_of_few_repetitions_the_report_has_no_interval_and_leaves_it_open(tmp_path: Path) -> None:
    found = summarise(planted(0.1, repetitions=3), 2)
    text = page(found, WISH, HOST, draw(found, tmp_path))
    assert {one.kept for one in found} == {Kept.OPEN}
    assert "inf" not in text
    assert "| flat | `fanout` | fanout | 3 | 1.127 | 1.002 | 0.997 | 0.899 | 0.899 | open |" in text
