"""How many VMs a host holds at the same p99: the published is what was kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.studies.servers import curve
from experiments.studies.servers.published import RESULTS, Cell, curves

README = (RESULTS.parent / "README.md").read_text(encoding="utf-8")
FIRST_PAGE = (Path(__file__).resolve().parents[3] / "README.md").read_text(encoding="utf-8")
HOSTS = curves()


@pytest.mark.parametrize("server", HOSTS)
def test_each_kept_curve_gives_its_published_table(server: str) -> None:
    assert curve.table(HOSTS[server]) in README


def test_the_kept_curves_give_the_published_numbers_of_vms() -> None:
    assert curve.held(HOSTS) in README


@pytest.mark.parametrize("server", HOSTS)
def test_so_many_vms_are_held_as_have_none_above_the_limit_with_as_many_or_fewer(server: str) -> None:
    host = HOSTS[server]
    for arm in curve.ARMS:
        for limit_ms in curve.limits_ms(host):
            held = curve.most_vms(host, arm, limit_ms)
            within = [point.vms for point in host if point.worst_ms(arm) <= limit_ms]
            assert held in (0, *within)
            assert all(point.worst_ms(arm) <= limit_ms for point in host if point.vms <= held)


@pytest.mark.parametrize("server", HOSTS)
def test_every_host_of_a_curve_answered_all_requests_and_did_all_work(server: str) -> None:
    for point in HOSTS[server]:
        cell = Cell("curve", (point.block,))
        for run in point.block.runs:
            assert all(one.errors == one.unfinished == 0 for one in run.tenants)
            assert cell.done(run.arm) == pytest.approx((1, 1), abs=0.05)


def held_by(arm: str, times: int) -> list[int]:
    """The most VMs of memcached, nginx and masstree, none above so many times the p99 of one alone."""
    at = curve.TIMES_ALONE.index(times)
    return [curve.most_vms(host, arm, curve.limits_ms(host)[at]) for host in HOSTS.values()]


def test_our_scheduler_holds_eight_or_nine_vms_where_the_plain_kernel_holds_four_or_five() -> None:
    assert list(HOSTS) == ["memcached", "nginx", "masstree"]
    assert held_by("scx", 2) == [9, 9, 8]
    assert held_by("none", 2) == held_by("none-again", 2) == [4, 5, 4]
    assert held_by("critical", 2) == [4, 6, 4]
    assert (held_by("none", 5), held_by("critical", 5)) == ([4, 7, 5], [4, 8, 7])
    assert "four memcached or five nginx VMs, [nine on our scheduler]" in FIRST_PAGE


def test_the_next_host_was_tried_where_the_plain_kernel_or_critical_holds_no_more() -> None:
    for arm in ("none", "none-again", "critical"):
        for times in curve.TIMES_ALONE:
            for most, host in zip(held_by(arm, times), HOSTS.values(), strict=True):
                assert most + 1 in {point.vms for point in host}, (arm, times)


def test_on_the_fullest_host_critical_has_less_than_half_of_the_plain_kernels_p99() -> None:
    full = [host[-1] for host in HOSTS.values()]
    parts = [point.p99_ms("critical") / point.p99_ms("none") for point in full]
    assert [round(part, 2) for part in parts] == [0.44, 0.33, 0.4]
    assert all(point.vms == 9 and point.busy > 0.93 for point in full)
