"""The paper's figures over the consolidation ratio: what is published is what was kept."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev

import pytest

from dasec.lab.kit.arms import CONTROL, NONE, WATCHED
from experiments.plan.file import told_in
from experiments.plan.servers import Servers
from experiments.results.analysis import JUDGED
from experiments.run.planned import experiment_in
from experiments.studies.consolidation.published import (
    CPUS,
    FURTHER,
    OVER,
    RESULTS,
    Point,
    beside,
    busiest,
    draw,
    files,
    further,
    points,
    table,
)
from experiments.studies.servers.published import GAIN, TOO_FEW, Cell, serving

HERE = Path(__file__).resolve().parents[3] / "experiments/studies/consolidation"
PAGE = (HERE / "README.md").read_text(encoding="utf-8")
FINDINGS = (HERE.parents[2] / "docs/findings.md").read_text(encoding="utf-8")
RATIOS = FINDINGS.partition("**At the paper's [consolidation ratios]")[2].partition("**Half busy**")[0]
KEPT = files()
POINTS = [(name, at) for name, points in KEPT.items() for at in points]


@pytest.mark.parametrize("name", KEPT)
def test_the_page_has_the_tables_of_the_kept_runs(name: str) -> None:
    assert table(KEPT[name]) in PAGE


def test_the_page_has_the_papers_table_1() -> None:
    assert busiest(KEPT) in PAGE


def test_latencies_rise_over_those_of_one_vm_as_the_page_says() -> None:
    one, *_, most = KEPT["masstree"]
    alone = [one.ms(NONE, metric) for metric in JUDGED]
    for arm, said in (
        (NONE, "{:.2f} times the mean that one VM has alone, and {:.1f} times the p99"),
        ("scx", "{:.2f} and {:.2f} times"),
    ):
        rises = [most.ms(arm, metric) / low for metric, low in zip(JUDGED, alone, strict=True)]
        assert said.format(*rises) in PAGE


def ms(cell: Cell, *arms: str) -> list[tuple[float, float]]:
    """Mean and p99 of each VM under these arms."""
    mean, p99 = JUDGED
    vms = [vm for arm in arms for run in cell.runs(arm) for vm in serving(run)]
    return sorted((vm.value(mean) / 1e6, vm.value(p99) / 1e6) for vm in vms)


def over_plain(at: Point, arm: str) -> list[float]:
    return [at.cell.ratio(arm, metric).ratio for metric in JUDGED]


def each_vm(at: Point, arm: str) -> Sequence[float]:
    """Its mean over that on the plain kernel."""
    (ours,), (plain,) = at.cell.runs(arm), at.cell.runs(NONE)
    pairs = zip(serving(ours), serving(plain), strict=True)
    return [vm.value("mean") / before.value("mean") for vm, before in pairs]


def test_with_silo_our_own_scheduler_gains_at_the_highest_ratio_as_the_pages_say() -> None:
    six, most = KEPT["silo"][-2:]
    p99s = {arm: max(p99 for _, p99 in ms(most.cell, arm)) for arm in (NONE, "scx")}
    said = "has {:.2f} of the mean and {:.2f} of p99,** and no VM a p99 above {:.1f} ms"
    assert said.format(*over_plain(most, "scx"), p99s["scx"]) in PAGE
    assert f"the plain kernel has up to {p99s[NONE]:.1f}. At 2.4 it has" in PAGE
    assert "At 2.4 it has {:.2f} and {:.2f}".format(*over_plain(six, "scx")) in PAGE
    assert "here {:.2f} of the mean and {:.2f} of p99".format(*over_plain(most, "critical")) in PAGE


FOUND = {
    **{f"{name}, {at.ratio:g}": at for name, points in KEPT.items() for at in points[-2:]},
    "two VMs of 16 threads": further("sixteen")[-1],
}
"""What the findings have rows of."""


@pytest.mark.parametrize("name", FOUND)
def test_the_findings_have_both_arms_over_the_plain_kernel_and_what_that_is_worth(name: str) -> None:
    at = FOUND[name]
    (row,) = (line for line in RATIOS.splitlines() if words_of(line).startswith(f"| {name}"))
    told = (f"{short(over_plain(at, arm))}{worth(at.cell.word(arm))}" for arm in ("critical", "scx"))
    assert row.endswith(f" | {' | '.join(told)} |")


def words_of(row: str) -> str:
    """The first cell of a row without its link."""
    return re.sub(r"\[(.*?)\]\(.*?\)", r"\1", row.split(" | ")[0])


def short(ratios: Sequence[float]) -> str:
    """As the findings have them."""
    return " / ".join(f"{one:.2f}".removeprefix("0") for one in ratios)


def worth(word: str) -> str:
    """A gain goes without saying."""
    return "" if word == GAIN else f" ({word})"


def test_with_two_more_seeds_silo_loses_nothing_under_critical() -> None:
    assert table(further("seeds")) in PAGE
    assert all(ratio < 1 for at in further("seeds") for ratio in over_plain(at, "critical"))
    second, third = (short(over_plain(at, "critical")) for at in further("seeds"))
    assert f"with two more `critical` has {second} and {third}." in RATIOS


def test_before_decision_0100_our_own_scheduler_harmed_half_of_the_vms_with_silo_as_the_page_says() -> None:
    most = points(RESULTS / "before/silo.jsonl")[-1].cell
    plain, ours = ms(most, NONE, CONTROL), ms(most, "scx")
    well, harmed = ours[:4], ours[4:]
    assert f"mean of {min(harmed)[0]:.1f} to {max(harmed)[0]:.1f} ms" in PAGE
    p99s = [p99 for _, p99 in harmed]
    assert f"p99 of {min(p99s):.0f} to {max(p99s):.0f} ms" in PAGE
    assert f"runs had {max(plain)[0]:.1f} and {max(p99 for _, p99 in plain):.1f} at most" in PAGE
    assert f"The other four had {well[0][0]:.2f} to {well[-1][0]:.2f} ms" in PAGE
    assert well[-1][0] < plain[0][0]
    assert min(harmed)[0] > max(plain)[0]
    assert min(p99s) > max(p99 for _, p99 in plain)


def test_two_more_guests_with_silo_had_no_such_vm_as_the_page_says() -> None:
    for name, said in (
        ("seed-2", "seed 2 it had {:.2f} of the mean and {:.2f} of p99"),
        ("warm-3", "first seed {:.2f} and {:.2f}."),
    ):
        (point,) = points(RESULTS / f"before/silo-{name}.jsonl")
        assert said.format(*(point.cell.ratio("scx", metric).ratio for metric in JUDGED)) in PAGE
        assert max(vm.value("p99") for run in point.cell.runs("scx") for vm in serving(run)) < 2.75e6


def test_the_page_has_what_vms_of_16_threads_have() -> None:
    assert [at.ratio for at in further("sixteen")] == [1.6, 3.2]
    for folder in FURTHER:
        assert table(further(folder)) in PAGE
    most = further("sixteen")[-1]
    assert most.cell.word("scx") == TOO_FEW
    assert "has {:.2f} of the mean and {:.2f} of p99 at 3.2".format(*over_plain(most, "scx")) in PAGE


WITH_CRITICAL = ("sixteen/again", "sixteen/watched", "sixteen/glibc")


def beside_plain(at: Point, arm: str) -> float:
    """That arm's mean over the mean of the guest's two plain runs."""
    return at.ms(arm, "mean") / mean((at.ms(NONE, "mean"), at.ms(CONTROL, "mean")))


def over_guests(guests: Sequence[Point], arm: str) -> str:
    """The mean of that, and its standard error."""
    ratios = [beside_plain(at, arm) for at in guests if at.cell.runs(arm)]
    return f"{mean(ratios):.2f} ± {stdev(ratios) / len(ratios) ** 0.5:.2f}"


def test_what_a_daemon_does_to_vms_of_16_threads_is_as_the_pages_say() -> None:
    sixteen, again, watched, rebuilt, glibc = (
        further(f"sixteen{more}") for more in ("", "/again", "/watched", "/rebuilt", "/glibc")
    )
    tcmalloc = [sixteen[-1], *again, *watched, *rebuilt]
    assert (len(tcmalloc), len(glibc)) == (11, 3)
    for arm, number in ((WATCHED, "nine guests (± one standard error)"), ("critical", "eight guests")):
        here = over_guests(tcmalloc, arm)
        said = f"{here} in {number}, with glibc's allocator {over_guests(glibc, arm)} in three"
        assert said in PAGE
        assert here in RATIOS
    for guests, said in (
        (tcmalloc, "runs have a mean of {} to {} ms, with"),
        (glibc, "allocator {} to {} ("),
    ):
        plain = [at.ms(arm, "mean") for at in guests for arm in (NONE, CONTROL)]
        assert said.format(f"{min(plain):.2f}", f"{max(plain):.2f}") in PAGE


def test_critical_harms_vms_of_16_threads_whether_it_writes_a_knob_or_not_as_the_page_says() -> None:
    ratios: dict[bool, list[float]] = {True: [], False: []}
    for at in (further("sixteen")[-1], *(at for folder in WITH_CRITICAL for at in further(folder))):
        (run,) = at.cell.runs("critical")
        ratios[bool(run.decided.get("applied"))].append(beside_plain(at, "critical"))
    wrote, none = ratios[True], ratios[False]
    assert (len(wrote), len(none)) == (6, 5)
    assert f"14 of 34) it has {mean(wrote):.2f}, in the five in which it wrote none {mean(none):.2f}." in PAGE


def test_our_own_scheduler_gains_with_either_allocator_as_the_page_says() -> None:
    found = further("sixteen/glibc")
    assert all(vm < 0.76 for at in found for vm in each_vm(at, "scx"))
    means, p99s = zip(*(map(float, over_plain(at, "scx")) for at in found), strict=True)
    said = f"{min(means):.2f} to {max(means):.2f} of the mean and {min(p99s):.2f} to {max(p99s):.2f} of p99"
    assert f"with glibc's allocator {said}" in PAGE


def test_the_page_has_what_was_done_beside_matrixmul() -> None:
    assert all(one in PAGE for one in beside())


@pytest.mark.parametrize("file", sorted(HERE.glob("*.toml")), ids=lambda file: str(file.name))
def test_every_file_asks_for_the_hosts_that_the_page_tells_of(file: Path) -> None:
    asked = experiment_in(told_in(file), file)
    assert isinstance(asked, Servers)
    assert asked.cpus == CPUS
    assert {one.threads for one in asked.server} == {16 if file.stem == "masstree-sixteen" else 4}
    if file.stem in KEPT:
        assert {cell.name for cell in asked.cells.possible} == {
            block.cell for one in KEPT[file.stem] for block in one.cell.blocks
        }


@pytest.mark.parametrize(("name", "at"), POINTS, ids=[f"{name} {at.ratio:g}" for name, at in POINTS])
def test_every_arm_answered_all_requests(name: str, at: Point) -> None:
    for arm in OVER:
        requests, _ = at.cell.done(arm)
        assert requests == pytest.approx(1, abs=0.02)
        assert all(one.errors == one.unfinished == 0 for run in at.cell.runs(arm) for one in run.tenants)


def test_they_are_drawn(tmp_path: Path) -> None:
    for name, at in KEPT.items():
        assert at[0].ms(NONE, "mean") > 0
        draw(name, at, tmp_path / "one.png")
        assert (tmp_path / "one.png").stat().st_size > 0
