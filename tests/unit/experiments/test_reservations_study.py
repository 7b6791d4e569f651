"""What the page about reservations says is what its kept runs say."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.studies.reservations.published import FIGURES, QUESTION, Seen, figures, kept, question

README = Path(__file__).parents[3] / "experiments/studies/reservations/README.md"
HOSTS = kept(*QUESTION)
BURSTS, SERVING = HOSTS["bursts-open"], HOSTS["serving-open"]


def test_the_kept_runs_give_the_published_tables() -> None:
    page = README.read_text(encoding="utf-8")
    assert question() in page
    assert figures() in page


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
    runs = kept(*FIGURES)[host]
    assert all(0.55 < runs[arm].target_cores < 0.8 for arm in ("none", "none-again"))
    assert runs["strict"].target_cores > 0.99


TARGETS = {
    beside: [kept(*FIGURES)[f"request-{cpus}-{beside}"]["none"].target_cores for cpus in (4, 5, 6, 7)]
    for beside in ("capped", "burstable")
}


def test_who_requests_more_gets_more_beside_a_capped_neighbour_only() -> None:
    assert sorted(TARGETS["capped"]) == TARGETS["capped"]
    assert TARGETS["capped"][-1] > 1.4 * TARGETS["capped"][0]
    assert max(TARGETS["burstable"]) < 1.07 * min(TARGETS["burstable"])


@pytest.mark.parametrize(("beside", "faster"), [("capped", 1.27), ("burstable", 1.50)])
def test_strict_gives_batch_work_more_of_what_it_requests(beside: str, faster: float) -> None:
    runs = kept(*FIGURES)[f"request-4-{beside}"]
    assert runs["strict"].target_cores / runs["none"].target_cores == pytest.approx(faster, abs=0.01)


@pytest.mark.parametrize(("beside", "plain", "strict"), [("capped", 0.82, 0.89), ("burstable", 1.0, 0.90)])
def test_strict_lowers_the_use_of_the_host_beside_a_burstable_neighbour_and_raises_it_beside_a_capped_one(
    beside: str, plain: float, strict: float
) -> None:
    runs = kept(*FIGURES)[f"request-4-{beside}"]
    assert runs["none"].cores / 8 == pytest.approx(plain, abs=0.01)
    assert runs["strict"].cores / 8 == pytest.approx(strict, abs=0.01)
