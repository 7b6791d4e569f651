"""Contests for CPU time under our scheduler: what is short, and that the published ones are the kept ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from experiments.studies.sched_ext.fairness import MOST_SHORT, Contest, summary, table
from experiments.studies.sched_ext.scripts import script
from experiments.studies.sched_ext.shares import command, contests

FOLDER = Path(__file__).parents[3] / "experiments/studies/sched_ext"
KEPT, PLAIN = FOLDER / "shares-results/dasec.jsonl", FOLDER / "shares-results/eevdf.jsonl"
BEFORE = FOLDER / "shares-results/before.jsonl"
"""Before decision 0089."""

AHEAD = FOLDER / "shares-results/nobody-was-ahead.jsonl"
"""By decision 0089."""

TIMERS = FOLDER / "shares-results/timers.jsonl"
"""By decision 0094."""

LESS_DEBT = FOLDER / "shares-results/less-debt.jsonl"
"""By decision 0095."""

CONFINED = FOLDER / "shares-results/confined.jsonl"
"""By decision 0098."""

ALIKE = FOLDER / "shares-results/alike.jsonl"
"""By decision 0100."""

SHORT_TURNS = FOLDER / "shares-results/short-turns.jsonl"
"""By decision 0104."""

MODEST = FOLDER / "shares-results/modest.jsonl"
"""By decision 0114, the first of them."""

SECONDS = 5.0


def test_the_worst_off_vm_counts_less_two_slices() -> None:
    contest = Contest("one", (0.49, 0.9, 0.61), (0.5, 1.0, 0.5))
    assert contest.shortfall(SECONDS) == pytest.approx(0.1 - 0.0016)
    assert [*contest.ratios()] == pytest.approx([0.98, 0.9, 1.22])


def test_half_a_slice_of_a_vm_to_which_little_is_due_is_no_shortfall() -> None:
    assert Contest("light", (0.0094, 1.99), (0.01, 1.99)).shortfall(SECONDS) < 0


def test_the_worst_comes_first_and_those_within_the_bound_are_counted() -> None:
    found = [Contest("fair", (1.0, 1.0), (1.0, 1.0)), Contest("unfair", (0.5, 1.5), (1.0, 1.0))]
    assert [line.split("`")[1] for line in table(found, SECONDS).splitlines()[2:]] == ["unfair", "fair"]
    assert summary(found, SECONDS) == "2 contests of 5 s: in 1 every VM is within 2% of its due"


def test_contests_that_are_kept_are_told_and_not_run_again(tmp_path: Path) -> None:
    runs = [{"name": f"seed-{seed}", "got": [1.0], "due": [1.0]} for seed in (1, 2)]
    (tmp_path / "dasec.jsonl").write_text("".join(json.dumps(run) + "\n" for run in runs))
    ran = CliRunner().invoke(command, ["--scripts", "2", "--out", str(tmp_path)])
    assert ran.exit_code == 0, ran.output
    assert "2 contests of 5 s: in 2 every VM is within 2% of its due" in ran.output
    assert (tmp_path / "dasec.png").stat().st_size > 0


def test_the_published_table_is_what_the_kept_contests_give() -> None:
    page, found = (FOLDER / "README.md").read_text(encoding="utf-8"), contests(KEPT)
    assert table(found, SECONDS) in page
    assert summary(found, SECONDS) in page


def test_of_the_same_contests_ours_keeps_shares_more_often_than_the_kernels_own() -> None:
    page, plain = (FOLDER / "README.md").read_text(encoding="utf-8"), contests(PLAIN)
    names = {one.name for one in plain}
    ours = [one for one in contests(KEPT) if one.name in names]
    assert summary(plain, SECONDS) in page
    within = sum(one.shortfall(SECONDS) <= MOST_SHORT for one in ours)
    assert f"Ours does so in {within} of the same {len(plain)}." in page
    worst = [max(one.shortfall(SECONDS) for one in each) for each in (plain, ours)]
    assert f"EEVDF's worst lacks {worst[0] * 100:.1f} %, ours {worst[1] * 100:.1f} %." in page


def lacking_ms(contest: Contest) -> float:
    """Of the VM that is furthest below 98 % of its due."""
    worst = max(zip(contest.got, contest.due, strict=True), key=lambda vm: 1 - vm[0] / vm[1])
    return (worst[1] - worst[0]) * SECONDS * 1000


def test_in_one_contest_a_vm_to_which_little_is_due_lacks_a_slice_more_than_two() -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    (short,) = (one for one in contests(KEPT) if one.shortfall(SECONDS) > MOST_SHORT)
    assert f"The worst VM lacks {short.shortfall(SECONDS) * 100:.1f} %." in page
    assert min(short.due) * SECONDS * 1000 / 4 == pytest.approx(35, abs=0.5)
    assert lacking_ms(short) - 8 == pytest.approx(4, abs=0.5)


def test_without_two_slices_as_many_contests_have_a_vm_with_less_as_the_page_says() -> None:
    page, kept = (FOLDER / "README.md").read_text(encoding="utf-8"), contests(KEPT)
    fair = sum(all(got >= 0.98 * due for got, due in zip(one.got, one.due, strict=True)) for one in kept)
    assert f"Without the two slices {len(kept) - fair} contests" in page


def test_what_the_page_says_of_those_who_lacked_something_before_is_so() -> None:
    short = [one for one in contests(LESS_DEBT) if one.shortfall(SECONDS) > MOST_SHORT]
    assert sorted(round(lacking_ms(one)) for one in short) == [27, 39, 78]
    assert sum(script(int(one.name.removeprefix("seed-"))).pinned for one in short) == len(short)


def test_before_vms_that_begin_owed_nothing_three_lacked_a_sixth_of_their_due_and_more() -> None:
    before = contests(BEFORE)
    assert {one.name for one in before} == {one.name for one in contests(KEPT)}
    assert sum(one.shortfall(SECONDS) <= MOST_SHORT for one in before) == 189
    worst = sorted((one.shortfall(SECONDS) for one in before), reverse=True)
    assert worst[0] == pytest.approx(0.19, abs=0.001)
    assert worst[2] > 0.17
    assert worst[3] < 0.08


def test_the_rules_before_kept_shares_in_as_many_of_the_same_contests_as_the_page_says() -> None:
    rules = [contests(file) for file in (AHEAD, TIMERS, LESS_DEBT, CONFINED, ALIKE, SHORT_TURNS, KEPT)]
    assert len({frozenset(one.name for one in rule) for rule in rules}) == 1
    within = [sum(one.shortfall(SECONDS) <= MOST_SHORT for one in rule) for rule in rules]
    assert within == [195, 188, 197, 200, 200, 200, 199]
    worst = [max(one.shortfall(SECONDS) for one in rule) for rule in rules]
    assert worst == pytest.approx([0.056, 0.043, 0.026, 0.018, 0.017, 0.018, 0.026], abs=0.0005)


def test_critical_threads_that_use_little_cost_nobody_a_share_in_as_many_contests_as_were_run() -> None:
    modest = contests(MODEST)
    names = {one.name for one in modest}
    before = [one for one in contests(KEPT) if one.name in names]
    assert len(modest) == len(names) == len(before) == 116
    assert [sum(one.shortfall(SECONDS) > MOST_SHORT for one in each) for each in (modest, before)] == [0, 1]
    assert max(one.shortfall(SECONDS) for one in modest) == pytest.approx(0.018, abs=0.0005)
