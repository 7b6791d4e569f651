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

THREE_DEBTS = FOLDER / "shares-results/three-debts.jsonl"
"""By a version of decision 0114 that let VMs be further ahead."""

MODEST = FOLDER / "shares-results/modest.jsonl"
"""By decision 0114 as it is."""

GROUPS_ABOVE = FOLDER / "shares-results/groups-above.jsonl"
"""By decision 0105."""

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


def of_the_worst_vm(contest: Contest) -> tuple[float, float]:
    """Of the VM that lacks the largest part of its due: that, and what it lacks, in ms."""
    alone = [Contest("one", (got,), (due,)) for got, due in zip(contest.got, contest.due, strict=True)]
    worst = max(alone, key=lambda vm: vm.shortfall(SECONDS))
    return worst.due[0] * SECONDS * 1000, (worst.due[0] - worst.got[0]) * SECONDS * 1000


def test_in_one_contest_a_vm_to_which_little_is_due_lacks_a_hair_more_than_two_slices_and_2_percent() -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    (short,) = (one for one in contests(KEPT) if one.shortfall(SECONDS) > MOST_SHORT)
    assert f"The worst VM lacks {short.shortfall(SECONDS) * 100:.1f} %, a hair more" in page
    due_ms, lacking_ms = of_the_worst_vm(short)
    assert due_ms / 4 == pytest.approx(81, abs=0.5)
    assert lacking_ms == pytest.approx(14.5, abs=0.05)
    assert lacking_ms - 2 * 4 - MOST_SHORT * due_ms < 0.5


def test_one_that_computes_with_a_single_thread_lacked_what_the_page_says_by_three_debts_only() -> None:
    for file, parts in (
        (THREE_DEBTS, (0.979, 0.987)),
        (MODEST, (1.0, 1.0)),
        (KEPT, (1.0, 1.0)),
        (GROUPS_ABOVE, (1.0, 1.0)),
    ):
        found = {one.name: one for one in contests(file)}
        alone = [found[name].got[found[name].due.index(1.0)] for name in ("seed-135", "seed-136")]
        assert alone == pytest.approx(parts, abs=0.001)


def test_without_two_slices_as_many_contests_have_a_vm_with_less_as_the_page_says() -> None:
    page, kept = (FOLDER / "README.md").read_text(encoding="utf-8"), contests(KEPT)
    fair = sum(all(got >= 0.98 * due for got, due in zip(one.got, one.due, strict=True)) for one in kept)
    assert f"Without the two slices {len(kept) - fair} contests" in page


def test_what_the_page_says_of_those_who_lacked_something_before_is_so() -> None:
    short = [one for one in contests(LESS_DEBT) if one.shortfall(SECONDS) > MOST_SHORT]
    assert sorted(round(of_the_worst_vm(one)[1]) for one in short) == [27, 39, 78]
    assert sum(script(int(one.name.removeprefix("seed-"))).pinned for one in short) == len(short)


def test_before_vms_that_begin_owed_nothing_three_lacked_a_sixth_of_their_due_and_more() -> None:
    before = contests(BEFORE)
    assert {one.name for one in before} == {one.name for one in contests(KEPT)}
    assert sum(one.shortfall(SECONDS) <= MOST_SHORT for one in before) == 189
    worst = sorted((one.shortfall(SECONDS) for one in before), reverse=True)
    assert worst[0] == pytest.approx(0.19, abs=0.001)
    assert worst[2] > 0.17
    assert worst[3] < 0.08


RULES = {
    "before [0089]": BEFORE,
    "[0089]": AHEAD,
    "[0094]": TIMERS,
    "[0095]": LESS_DEBT,
    "[0098]": CONFINED,
    "[0100]": ALIKE,
    "[0104]": SHORT_TURNS,
    "[0105]": GROUPS_ABOVE,
    "[0114](../../../docs/decisions/0114-modest.md), three debts": THREE_DEBTS,
    "[0114](../../../docs/decisions/0114-modest.md) |": MODEST,
    "[0116]": KEPT,
}


@pytest.mark.parametrize("rule", RULES)
def test_the_page_says_in_how_many_of_the_same_contests_each_rule_kept_shares(rule: str) -> None:
    page, found = (FOLDER / "README.md").read_text(encoding="utf-8"), contests(RULES[rule])
    assert {one.name for one in found} == {one.name for one in contests(KEPT)}
    (row,) = (line.split(" | ") for line in page.splitlines() if line.startswith(f"| {rule}"))
    within = sum(one.shortfall(SECONDS) <= MOST_SHORT for one in found)
    assert row[1] == f"[{within}]({RULES[rule].relative_to(FOLDER)})"
    assert row[2] == f"{max(one.shortfall(SECONDS) for one in found) * 100:.1f} %"
