"""What is published of KVM virtual machines in counted guests is what was kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from dasec.lab.kit.arms import CONTROL, NONE, SCX
from experiments.results.analysis import JUDGED
from experiments.studies.kvm.published import (
    ALL_ARMS,
    CURVE,
    DAEMON,
    DOMAINS,
    FOLLOWING,
    ON_OURS,
    RESULTS,
    SEEDS,
    followed,
    worth,
)
from experiments.studies.servers import curve
from experiments.studies.servers.published import Cell, cells, table, words

TOP = Path(__file__).resolve().parents[3]
PAGE = (TOP / "experiments/studies/kvm/README.md").read_text()
FIRST_PAGE, FINDINGS = (TOP / "README.md").read_text(), (TOP / "docs/findings.md").read_text()
KEPT = {cell.file: cell for cell in cells(RESULTS)}
OTHERS = {cell.file: cell for cell in cells(SEEDS)}
ON_IT = {cell.file: cell for cell in cells(DAEMON)}
FOLLOWED = {cell.file: cell for cell in cells(DOMAINS)}
EACH = {**KEPT, **OTHERS, **ON_IT, **FOLLOWED}
POINTS = curve.points(CURVE)


def test_the_kept_runs_give_the_published_tables() -> None:
    kept = tuple(KEPT.values())
    assert table(kept, ALL_ARMS) in PAGE
    assert words(kept, ALL_ARMS) in PAGE
    assert table(tuple(OTHERS.values())) in PAGE
    assert table(tuple(ON_IT.values()), ON_OURS) in PAGE
    domains = tuple(FOLLOWED.values())
    assert table(domains, FOLLOWING) in PAGE
    assert words(domains, FOLLOWING) in PAGE
    assert followed(domains) in PAGE
    assert curve.table(POINTS) in PAGE
    assert curve.held({"kvm": POINTS}) in PAGE


@pytest.mark.parametrize("cell", EACH.values(), ids=EACH)
def test_every_arm_answered_all_requests_and_all_but_the_papers_rules_did_all_work(cell: Cell) -> None:
    for run in (run for block in cell.blocks for run in block.runs):
        assert all(one.errors == one.unfinished == 0 for one in run.tenants)
        requests, cores = cell.done(run.arm)
        assert requests == pytest.approx(1, abs=0.01)
        assert cores > (0.85 if "dasec" in run.arm else 0.96)


def test_on_our_own_scheduler_requests_take_about_as_long_as_those_of_one_machine_alone() -> None:
    alone = {metric: POINTS[0].block.of(NONE).tenants[0].value(metric) / 1e6 for metric in JUDGED}
    for name in ("busy", "shared", "sixteen"):
        cell = KEPT[name]
        assert cell.word("scx") == "gain"
        assert cell.ms("scx", "mean") < 1.15 * alone["mean"]
        assert cell.ms("scx", "p99") < 1.2 * alone["p99"]
        assert cell.plain_ms("p99") > 6 * alone["p99"]
    busy = KEPT["busy"]
    for metric, most in (("mean", 0.29), ("p99", 0.145)):
        pairs = zip(busy.runs("scx")[0].tenants, busy.runs(NONE)[0].tenants, strict=True)
        assert max(ours.value(metric) / plain.value(metric) for ours, plain in pairs) < most


def test_other_seeds_say_the_same() -> None:
    for name, critical in (("busy-2", "gain"), ("busy-3", "nothing")):
        assert [OTHERS[name].word(arm) for arm in ("critical", "scx")] == [critical, "gain"]
        for metric in JUDGED:
            first = KEPT["busy"].ratio("scx", metric).ratio
            assert OTHERS[name].ratio("scx", metric).ratio == pytest.approx(first, abs=0.03)
    assert OTHERS["debian-2"].word("critical") == "gain"


def test_nine_machines_are_within_twice_the_p99_of_one_alone_and_so_is_each_lower_number_but_three() -> None:
    limit_ms, _ = curve.limits_ms(POINTS)
    assert [point.vms for point in POINTS] == list(range(1, 10))
    assert [point.vms for point in POINTS if point.worst_ms("scx") > limit_ms] == [3]
    (three,) = (point for point in POINTS if point.vms == 3)
    (late,) = (vm for vm in three.block.of("scx").tenants if vm.value("p99") / 1e6 > limit_ms)
    assert f"{late.value('p99') / 1e6:.2f} ms, since a few of its {late.latencies.count} requests" in PAGE
    assert f"took up to {late.value('p999') / 1e6:.1f}." in PAGE


def test_with_two_other_seeds_none_of_three_machines_is_late_as_the_page_says() -> None:
    threes = OTHERS["three-2"], OTHERS["three-3"]
    ours = [vm for cell in threes for run in cell.runs("scx") for vm in run.tenants]
    assert f"none of three has more than {max(vm.value('p99') for vm in ours) / 1e6:.2f} ms" in PAGE
    plain = [vm for cell in threes for arm in (NONE, CONTROL) for run in cell.runs(arm) for vm in run.tenants]
    assert f"up to {max(vm.value('p999') for vm in plain) / 1e6:.1f} ms with these seeds" in PAGE


def test_the_daemon_on_our_own_scheduler_takes_nothing_and_partial_mode_little() -> None:
    for cell in ON_IT.values():
        assert {cell.word(arm) for arm in ON_OURS if arm != CONTROL} == {"gain"}
        assert cell.ratio("scx:critical", "p99").ratio < cell.ratio(SCX, "p99").ratio + 0.02
        assert cell.ratio("scx-partial:critical", "p99").ratio < cell.ratio(SCX, "p99").ratio + 0.04
        assert cell.ratio("scx-partial:critical", "mean").ratio < 0.33


def test_on_debians_own_kernel_critical_gains_what_the_oracle_does() -> None:
    cell = KEPT["debian"]
    assert cell.word("critical") == cell.word("oracle") == "gain"
    for metric, more in (("mean", 0.02), ("p99", 0.05)):
        assert cell.ratio("critical", metric).ratio < cell.ratio("oracle", metric).ratio + more


def test_other_pages_have_the_same_figures() -> None:
    def short(ratio: float) -> str:
        return f"{ratio:.2f}"

    busy = {
        arm: [short(KEPT["busy"].ratio(arm, metric).ratio) for metric in JUDGED]
        for arm in ("scx", "critical")
    }
    row = f"Linux 7.3 ({', '.join(busy['scx'])}) | {' | '.join(busy['critical'])} | [KVM]"
    assert f"| {KEPT['busy'].word('critical')} | KVM guests, {row}" in FIRST_PAGE
    for cell in KEPT.values():
        for arm in filter(cell.runs, ("critical", "oracle", "scx")):
            figures = ", ".join(short(cell.ratio(arm, one).ratio).removeprefix("0") for one in JUDGED)
            assert f"| {cell.word(arm)}: {figures} |" in FINDINGS


def test_on_debians_own_kernel_qemus_own_threads_bring_and_take_nothing_when_they_follow() -> None:
    for cell in FOLLOWED.values():
        for arm in ("critical", "critical+follow"):
            assert cell.word(arm) == "gain"
        for policy in ("critical", "oracle"):
            for metric in JUDGED:
                found = worth(cell, policy, metric)
                assert found is None or found.low < 1 < found.high
        assert cell.done("critical+follow") == pytest.approx(cell.done("critical"), abs=0.01)


def test_in_groups_that_lie_as_libvirts_critical_gains_more_of_the_same_arrivals() -> None:
    for name, other in (("follow", KEPT["debian"]), ("follow-2", OTHERS["debian-2"])):
        counts = [
            [one.latencies.count for one in cell.runs(NONE)[0].tenants] for cell in (FOLLOWED[name], other)
        ]
        assert counts[0] == counts[1]
        for metric in JUDGED:
            assert (
                FOLLOWED[name].ratio("critical", metric).ratio < other.ratio("critical", metric).ratio - 0.06
            )
