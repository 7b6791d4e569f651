"""The fleet's study: its curve foretells a run that it has not seen, and its page says what its rows say."""

from __future__ import annotations

import csv
from pathlib import Path

import click
import numpy as np
import pytest

from experiments.studies.fleet import capacity, moves
from experiments.studies.fleet.__main__ import DEMANDS
from experiments.studies.fleet.curves import (
    PLAIN,
    Curve,
    Point,
    Waits,
    measured,
    measured_hosts,
    measured_waits,
    other_seeds,
    other_studies,
    waits_seen,
)
from experiments.studies.fleet.demand import STEPS, Demand
from experiments.studies.fleet.foreseen import foreseen, foreseen_table
from experiments.studies.fleet.jobs import LIMITS
from experiments.studies.fleet.measured_tables import ARMS, checks_table, hosts_table, waits_table
from experiments.studies.fleet.paper import held_on_paper
from experiments.studies.fleet.tables import (
    Held,
    HeldMoving,
    Moved,
    capacity_table,
    held_moving_table,
    moves_table,
    paper_table,
)
from experiments.studies.fleet.traces import Traces

PAGE = Path(capacity.__file__).parent / "README.md"
KNOWN = Curve.through([Point(0.1, 5.0), Point(0.5, 10.0), Point(0.9, 40.0)])


def rows(name: str) -> list[dict[str, str]]:
    with (PAGE.parent / "results" / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_other_studies_are_foretold_within_15_percent_as_far_as_limits_reach() -> None:
    most_ms = max(LIMITS) * measured()[PLAIN].alone_ms
    within = [each for each in other_studies() if each.curve_ms <= most_ms]
    assert {each.arm for each in within} == set(ARMS)
    assert {each for each in within if round(abs(each.off), 2) > 0.15} == set()


@pytest.mark.parametrize("folder", [".", "recorded"])
def test_with_hints_no_seed_holds_fewer_vms_at_any_limit(folder: str) -> None:
    held = {
        tuple(row[each] for each in ("demand", "limit", "arm", "seed", "hints")): float(row["vms_each"])
        for row in rows(f"{folder}/held_moving.csv")
    }
    pairs = [(held[*key, "False"], held[*key, "True"]) for *key, hints in held if hints == "True"]
    assert all(without <= followed + 0.02 for without, followed in pairs)
    assert sum(without < followed for without, followed in pairs) > len(pairs) / 2


def test_after_a_move_hosts_wait_within_8_points_of_what_the_rule_expects() -> None:
    assert max(abs(one.rule - one.measured) for one in foreseen(measured_waits())) < 0.08


def test_on_paper_a_steady_host_holds_as_many_vms_as_its_bound_has_cores() -> None:
    steady = Demand(1.0, unlike=0.0, swing=0.0, noise=0.001)
    assert held_on_paper(steady, 8.0) == pytest.approx(8.0, rel=0.01)
    assert held_on_paper(Demand(1.0), 8.0) < 5.0


def test_a_curve_goes_through_its_points_and_claims_nothing_beyond_them() -> None:
    assert KNOWN.p99_ms(np.array([0.1, 0.5, 0.9])) == pytest.approx([5, 10, 40])
    assert KNOWN.p99_ms(np.array([0.0, 0.91])) == pytest.approx([5, np.inf])


def test_who_is_busier_than_any_measured_host_waits_no_less_than_that_one() -> None:
    waits = Waits.through([(0.1, 0.0), (0.5, 0.1), (0.9, 0.4)])
    assert [waits.part(busy) for busy in (0.0, 0.1, 0.5, 0.9)] == pytest.approx([0.0, 0.0, 0.1, 0.4])
    parts = [moves.waiting_part(busy, waits) for busy in (0.9, 0.95, 0.99, 1.2)]
    assert parts == sorted(parts)
    assert parts[-1] > 0.5


def test_a_host_may_be_as_busy_as_the_limit_allows() -> None:
    assert KNOWN.most_busy(10.0) == pytest.approx(0.5, abs=1e-3)
    assert KNOWN.most_busy(4.9) == 0.0
    assert KNOWN.most_busy(1e9) == 0.9


def test_more_vms_keep_less_often_to_the_limit_and_the_last_that_do_are_held() -> None:
    busy_at = {vms: capacity.busy_parts(Demand(1.5), 50, vms, 0) for vms in range(1, 8)}
    parts = [capacity.kept(busy, KNOWN.most_busy(10.0)) for busy in busy_at.values()]
    assert parts == sorted(parts, reverse=True)
    held = capacity.held(busy_at, KNOWN, 10.0)
    assert parts[int(held) - 1] >= capacity.KEPT > parts[int(held)]


def test_a_fleet_that_follows_hints_does_not_move_where_nobody_waits() -> None:
    quiet = moves.live(Demand(0.2), 5, 3, moves.Start.RANDOM, 2, 0, measured_waits()[PLAIN])
    assert quiet.moves == ()


def test_hints_spare_a_crowded_fleet_time_beyond_the_limit() -> None:
    plain = measured()[PLAIN]
    over = {}
    for told in (None, measured_waits()[PLAIN]):
        lived = moves.live(Demand(1.53), 30, 3, moves.Start.RANDOM, 2, 0, told)
        over[told is not None] = 1 - capacity.kept(lived.busy, plain.most_busy(17.4))
    assert over[True] < over[False]


@pytest.mark.parametrize("folder", [".", "recorded"])
def test_where_all_hints_were_followed_nothing_came_back_within_a_day_and_no_host_had_two_moves_at_a_time(
    folder: str,
) -> None:
    left: dict[tuple[str, ...], int] = {}
    busy: dict[tuple[str, ...], int] = {}
    seen = 0
    for row in rows(f"{folder}/made.csv"):
        fleet, step = (row["vms"], row["start"], row["arm"], row["seed"]), int(row["step"])
        back = left.get((*fleet, "vm", row["vm"], row["target"]), -STEPS)
        assert step - back >= STEPS, row
        for host in (row["source"], row["target"]):
            assert step - busy.get((*fleet, host), -moves.REST_STEPS) >= moves.REST_STEPS, row
            busy[*fleet, host] = step
        left[*fleet, "vm", row["vm"], row["source"]] = step
        seen += 1
    assert seen == sum(int(row["moves"]) for row in rows(f"{folder}/moved.csv"))
    assert seen > 500


def a_folder(folder: Path, *days: str) -> Path:
    for number, day in enumerate(days):
        (folder / f"vm-{number}").write_text(day)
    return folder


def test_recorded_vms_live_their_day_and_ask_for_what_was_measured_on_average(tmp_path: Path) -> None:
    traces = Traces.read(a_folder(tmp_path, "10\n" * STEPS, "0\n40\n" * (STEPS // 2)), mean_cores=1.5)
    vms = traces.vms(1000, np.random.default_rng(0))
    assert sorted({*vms.means}) == pytest.approx([1.0, 2.0])
    first, second, *_ = vms.day(np.random.default_rng(0))
    assert {*zip(first.round(6), second.round(6), strict=True)} == {(1.0, 1.0), (0.0, 4.0)}


@pytest.mark.parametrize(
    ("day", "says"),
    [
        ("1\n" * 287, "288 lines"),
        ("-1\n" * STEPS, "288 lines"),
        ("a\n", "one number"),
        ("0\n" * STEPS, "no day"),
    ],
)
def test_what_is_no_recorded_day_is_refused_in_one_line(tmp_path: Path, day: str, says: str) -> None:
    with pytest.raises(click.BadParameter, match=says):
        Traces.read(a_folder(tmp_path, day), 1.5)


def test_a_folder_without_a_day_is_refused(tmp_path: Path) -> None:
    with pytest.raises(click.BadParameter, match="no day"):
        Traces.read(tmp_path, 1.5)


@pytest.mark.parametrize("folder", [".", "recorded"])
def test_the_page_shows_the_tables_of_the_kept_rows(folder: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    held = [
        Held(row["demand"], float(row["limit"]), row["arm"], int(row["seed"]), float(row["vms_each"]))
        for row in rows(f"{folder}/held.csv")
    ]
    moved = [
        Moved(
            *(row["vms"], row["start"], row["hints"] == "True", row["arm"], int(row["seed"])),
            *(float(row["over"]), int(row["moves"])),
        )
        for row in rows(f"{folder}/moved.csv")
    ]
    held_moving = [
        HeldMoving(
            *(row["demand"], float(row["limit"]), row["arm"], int(row["seed"]), row["hints"] == "True"),
            float(row["vms_each"]),
        )
        for row in rows(f"{folder}/held_moving.csv")
    ]
    assert capacity_table(held) in page
    assert held_moving_table(held_moving) in page
    assert moves_table(moved) in page
    if folder == ".":
        assert paper_table(held, DEMANDS, measured()) in page
        assert hosts_table(measured_hosts(), other_seeds()) in page
        assert waits_table(waits_seen()) in page
        assert foreseen_table(measured_waits()) in page
        assert checks_table(other_studies()) in page


def test_where_the_plain_host_holds_no_vm_the_others_are_counted() -> None:
    held = [Held("any", 1.5, arm, 0, 0.0 if arm == PLAIN else 3.0) for arm in ARMS]
    assert capacity_table(held).splitlines()[-1] == "| any | 1.5 | 0.00 | 3.00 VMs | 3.00 VMs | 3.00 VMs |"
