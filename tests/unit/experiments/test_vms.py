"""The VM experiment, without VMs: what a run's figures become."""

from __future__ import annotations

from pathlib import Path

import pytest

from dasec.lab.kit.results import RunResult, TenantResult
from dasec.lab.kit.scenario import SERVICE, Scenario, Tenant
from dasec.lab.load_tool import Latencies
from experiments.plan.blocks import Block
from experiments.plan.cells import Cell
from experiments.results.analysis import summarise
from experiments.results.store import Store
from experiments.studies.vms.measure import INSIDE, OUTSIDE, seen_from
from experiments.studies.vms.report import publish
from experiments.studies.vms.wish import Wish

ARMS = ("none", "none-again", "critical")
WISH = Wish(ratios=(1.0, 2.0), policies=("critical",), cpus=2)
FACTOR = {"none": 1.0, "none-again": 1.01, "critical": 0.5}


def tenant(name: str, mean_ns: float) -> TenantResult:
    percentiles = dict.fromkeys(("p50", "p90", "p95", "p99", "p999"), int(mean_ns))
    return TenantResult(name, Latencies("", 100, mean_ns, percentiles), 20.0, 0, 0, 0, 0.4, 0.0)


def run(arm: str, repetition: int) -> RunResult:
    """The policy halves what clients outside see and changes nothing inside."""
    tenants = (tenant("inside-0", 1e6), tenant("outside-0", 4e6 * FACTOR[arm] * (1 + repetition / 1000)))
    return RunResult(arm, repetition, tenants, 0.1, 0.05, 0.5, 0.0, 0.0, 5.0, {})


def cell(where: str, ratio: float) -> Cell:
    return Cell(where, ratio, 0.0, "vm", Scenario(2, (Tenant(f"{where}-0", SERVICE, 2),) * int(ratio)))


@pytest.fixture
def store(tmp_path: Path) -> Store[Wish]:
    made = Store(tmp_path, Wish)
    for repetition in range(4):
        runs = [run(arm, repetition) for arm in ARMS]
        for where in (OUTSIDE, INSIDE):
            for ratio in WISH.ratios:
                seen = [seen_from(where, one) for one in runs]
                made.add(Block(cell(where, ratio), repetition, ARMS), seen)
    return made


def test_what_clients_outside_and_inside_see_is_judged_apart(store: Store[Wish]) -> None:
    outside = summarise(cell(OUTSIDE, 1.0), store.done(), ARMS)
    inside = summarise(cell(INSIDE, 1.0), store.done(), ARMS)
    assert outside is not None
    assert inside is not None
    assert outside.arms["critical"].ratios["mean"].ratio == pytest.approx(0.5)
    assert inside.arms["critical"].ratios["mean"].ratio == pytest.approx(1)
    assert (str(outside.arms["critical"].verdict), str(inside.arms["critical"].verdict)) == (
        "gain",
        "no effect",
    )


def test_the_report_has_a_line_for_each_client_and_ratio_and_a_picture(
    store: Store[Wish], tmp_path: Path
) -> None:
    cells = [cell(where, ratio) for where in (OUTSIDE, INSIDE) for ratio in WISH.ratios]
    found = [one for each in cells if (one := summarise(each, store.done(), ARMS))]
    page = publish(WISH, found, {"kernel": "6.1"}, tmp_path).read_text()
    for start in ("| outside | 1 |", "| outside | 2 |", "| inside | 1 |", "| inside | 2 |"):
        assert start in page
    assert (tmp_path / "ratio.png").exists()
    assert "![" in page


def test_a_ratio_is_complete_before_the_next_one_whose_guests_have_to_boot() -> None:
    orders = list(WISH.orders())
    assert [(ratio, repetition) for ratio, repetition, _ in orders] == [
        (ratio, repetition) for ratio in WISH.ratios for repetition in range(WISH.repetitions)
    ]
    assert all(sorted(order) == sorted(ARMS) for _, _, order in orders)
    assert orders == list(WISH.orders()), "a run that goes on would have other orders"


def test_a_ratio_that_makes_no_guest_is_refused() -> None:
    with pytest.raises(ValueError, match="give ratios that make one at least"):
        Wish(ratios=(0.2,), cpus=2)
