"""What the page about reservations says is what its kept runs say."""

from __future__ import annotations

from pathlib import Path

import pytest

from dasec.lab.kit.ratios import geometric_mean
from experiments.studies.reservations import machines, rkube, trace
from experiments.studies.reservations.published import QUESTION, question
from experiments.studies.reservations.runs import Seen, kept

STUDY = Path(__file__).parents[3] / "experiments/studies/reservations"
HOSTS = kept(*QUESTION)
FIGURES = kept(*rkube.FILES)
BURSTS, SERVING = HOSTS["bursts-open"], HOSTS["serving-open"]


def test_the_kept_runs_give_the_published_tables() -> None:
    page = (STUDY / "README.md").read_text(encoding="utf-8")
    assert question() in page
    assert rkube.table() in page
    assert machines.table() in page


def test_beside_background_critical_has_the_p99_of_strict_and_elsewhere_that_of_the_plain_kernel() -> None:
    plain = min(BURSTS["none"].p99_ms, BURSTS["none-again"].p99_ms)
    assert BURSTS["critical"].p99_ms < BURSTS["strict"].p99_ms < 0.6 * plain
    assert SERVING["critical"].p99_ms == pytest.approx(SERVING["none"].p99_ms, rel=0.05)
    assert SERVING["none"].p99_ms > 1.5 * SERVING["strict"].p99_ms


def test_our_own_scheduler_is_below_strict_and_costs_nobody_anything_with_either_seed() -> None:
    for host, p99_ms, other_ms in (("bursts-open", 5.5, 6.0), ("serving-open", 8.4, 10.0)):
        other = kept("seed-2/open")[host]
        for runs, ms in ((HOSTS[host], p99_ms), (other, other_ms)):
            assert runs["scx"].p99_ms == pytest.approx(ms, abs=0.06)
            assert runs["scx"].p99_ms < HOSTS[host]["strict"].p99_ms
            assert runs["scx"].background_cores == pytest.approx(runs["none"].background_cores, rel=0.025)
            assert runs["scx"].other_cores == pytest.approx(runs["none"].other_cores, rel=0.02)


@pytest.mark.parametrize("host", [BURSTS, SERVING], ids=["bursts", "serving"])
def test_strict_leaves_the_batch_work_what_is_not_reserved_and_the_rest_idle(host: dict[str, Seen]) -> None:
    for arm in ("strict", "strict:critical"):
        assert host[arm].other_cores == pytest.approx(2, abs=0.01)
        assert host[arm].cores < 0.66 * host["none"].cores


def test_critical_costs_the_services_own_background_and_nobody_else() -> None:
    assert BURSTS["critical"].background_cores < 0.8 * BURSTS["none"].background_cores
    assert BURSTS["critical"].other_cores > 1.09 * BURSTS["none"].other_cores


def test_critical_within_strict_is_the_best_beside_background_but_for_our_own_scheduler() -> None:
    assert sorted(BURSTS, key=lambda arm: BURSTS[arm].p99_ms)[:2] == ["scx", "strict:critical"]


def test_a_part_of_a_cpu_is_a_runqueue_that_is_shared() -> None:
    assert BURSTS["wysiwyg"].p99_ms > max(BURSTS["none"].p99_ms, BURSTS["none-again"].p99_ms)
    assert SERVING["wysiwyg"].p99_ms < SERVING["none"].p99_ms


def test_no_request_is_lost_under_any_arm() -> None:
    for host in HOSTS.values():
        for run in host.values():
            assert run.requests == pytest.approx(host["none"].requests, rel=0.01)


@pytest.mark.parametrize("host", ["example-capped", "example-burstable"])
def test_a_thread_loses_a_part_of_its_cpu_to_a_shared_queue_and_none_of_one_of_its_own(host: str) -> None:
    runs = FIGURES[host]
    assert all(0.55 < runs[arm].target_cores < 0.8 for arm in ("none", "none-again"))
    assert runs["strict"].target_cores > 0.99


def faster(host: str) -> float:
    """So many times as fast the target is with CPUs of its own: batch work has that much more CPU time."""
    runs = FIGURES[host]
    return runs["strict"].target_cores / runs["none"].target_cores


def slower(host: str, alone: str) -> float:
    """So many times as slow the target is beside the neighbour."""
    return FIGURES[alone]["none"].target_cores / FIGURES[host]["none"].target_cores


@pytest.mark.parametrize(("beside", "times"), [("capped", 1.58), ("burstable", 2.16)])
def test_at_the_paper_s_size_neighbours_slow_batch_work_and_strict_gives_all_of_it_back(
    beside: str, times: float
) -> None:
    assert slower(f"batch-{beside}", "batch-alone") == pytest.approx(times, abs=0.01)
    strict, alone = FIGURES[f"batch-{beside}"]["strict"], FIGURES["batch-alone"]["none"]
    assert strict.target_cores == pytest.approx(alone.target_cores, rel=0.01)


@pytest.mark.parametrize(("beside", "plain", "strict"), [("capped", 0.78, 0.97), ("burstable", 1.01, 0.97)])
def test_strict_lowers_the_use_of_the_host_beside_a_burstable_neighbour_and_raises_it_beside_a_capped_one(
    beside: str, plain: float, strict: float
) -> None:
    runs = FIGURES[f"batch-{beside}"]
    assert runs["none"].cores / 22 == pytest.approx(plain, abs=0.01)
    assert runs["strict"].cores / 22 == pytest.approx(strict, abs=0.01)


REQUESTS = (4, 5, 6, 7)
TARGETS = {
    beside: [FIGURES[f"request-{cpus}-{beside}"]["none"].target_cores for cpus in REQUESTS]
    for beside in ("capped", "burstable")
}


def test_who_requests_more_gets_more_beside_a_capped_neighbour_only() -> None:
    assert sorted(TARGETS["capped"]) == TARGETS["capped"]
    assert TARGETS["capped"][-1] > 1.2 * TARGETS["capped"][0]
    assert TARGETS["burstable"][-1] < 1.07 * TARGETS["burstable"][0]


def test_strict_with_four_cpus_is_better_than_plain_with_seven() -> None:
    for beside, targets in TARGETS.items():
        assert FIGURES[f"request-4-{beside}"]["strict"].target_cores > max(targets)


@pytest.mark.parametrize("threads", [5, 6, 7])
@pytest.mark.parametrize(("beside", "least", "most"), [("capped", 1.1, 1.5), ("burstable", 1.7, 2.2)])
def test_as_many_threads_as_requested_gain_by_strict_too(
    threads: int, beside: str, least: float, most: float
) -> None:
    assert least < faster(f"threads-{threads}-{beside}") < most


def test_strict_with_everything_assigned_is_better_than_plain_with_three_cpus_left_idle() -> None:
    plain = [FIGURES[f"assigned-{cpus}"]["none"].target_cores for cpus in (7, 6, 5)]
    assert sorted(plain) == plain
    assert FIGURES["request-4-capped"]["strict"].target_cores > plain[-1]


def test_three_replicas_with_cpus_of_their_own_are_as_good_as_five_without() -> None:
    plain = {replicas: FIGURES[f"replicas-{replicas}"]["none"].p99_ms for replicas in (3, 4, 5)}
    assert FIGURES["replicas-3"]["strict"].p99_ms < plain[5] < plain[4] < plain[3]


def test_services_with_cpus_of_their_own_have_the_p99_that_they_have_alone() -> None:
    alone = FIGURES["interactive-alone"]["none"].p99_ms
    runs = FIGURES["interactive-burstable"]
    assert runs["strict"].p99_ms < 1.02 * alone < 0.63 * runs["none"].p99_ms


def test_the_machines_of_figure_12_are_those_that_are_drawn() -> None:
    assert (STUDY / "trace.toml").read_text(encoding="utf-8") == trace.told()
    assert len(kept(machines.FILE)) == trace.MACHINES


def test_on_drawn_machines_our_own_scheduler_does_what_strict_does_and_costs_batch_work_nothing() -> None:
    changes = machines.changes()
    p99 = {arm: geometric_mean([one.p99 for one in each]) for arm, each in changes.items()}
    batch = {arm: geometric_mean([one.batch for one in each]) for arm, each in changes.items()}
    assert p99["scx"] < p99["strict"] < 0.65
    assert batch["scx"] > 1 > 0.7 > batch["strict"]
    assert all(one.p99 < 0.9 for one in changes["scx"])
    assert p99["critical"] == pytest.approx(1, abs=0.04)
    for one in (one for each in changes.values() for one in each):
        assert one.requests == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize(
    ("rate", "alone", "plain", "strict"),
    [(300, 6.9, 9.3, 12.5), (600, 11.2, 43.5, 11.4), (800, 28.1, 507.9, 49.8)],
)
def test_the_more_requests_the_more_strict_is_worth(
    rate: int, alone: float, plain: float, strict: float
) -> None:
    beside = FIGURES[f"rate-{rate}-burstable"]
    found = (FIGURES[f"rate-{rate}-alone"]["none"].p99_ms, beside["none"].p99_ms, beside["strict"].p99_ms)
    assert found == pytest.approx((alone, plain, strict), abs=0.06)


def test_with_limits_as_large_as_requests_critical_is_with_strict_beside_background_only() -> None:
    bursts, serving = HOSTS["bursts-limit"], HOSTS["serving-limit"]
    assert bursts["critical"].p99_ms < bursts["strict"].p99_ms < bursts["none"].p99_ms
    assert bursts["critical"].background_cores == pytest.approx(bursts["none"].background_cores, rel=0.02)
    assert serving["critical"].p99_ms > serving["none"].p99_ms > serving["strict"].p99_ms
