"""What holds of a move whatever the fleet is, and of a fleet that follows all of them."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from dasec.placement import AdvisedMove, FleetHost, Lately, Resident, fit, hint, wait_with
from dasec.placement.hint import TARGET_AT_MOST, WORKLOAD_WORSE_AT_MOST, WORTH
from dasec.placement.waits import queued_part
from dasec.reservations import Ask, CpuClass, Refused

NAMES = "abcdef"


@st.composite
def workloads(draw: st.DrawFn, name: str) -> Resident:
    vcpus = draw(st.integers(1, 16))
    running = draw(st.floats(0, vcpus))
    waiting = draw(st.floats(0, min(0.5, vcpus - running)))
    ask = Ask(name, draw(st.integers(1, 8000)), draw(st.sampled_from(CpuClass)))
    return Resident(
        *(name, vcpus, running, waiting, draw(st.floats(0, 8))),
        ask=draw(st.sampled_from([None, None, None, ask])),
        may_move=draw(st.booleans()) or draw(st.booleans()),
    )


@st.composite
def fleets(draw: st.DrawFn) -> list[FleetHost]:
    """A host that waits, up to three that may, and one that is empty; workloads are called alike at times."""
    hosts = []
    for number in range(draw(st.integers(1, 4))):
        names = draw(st.lists(st.sampled_from(NAMES), min_size=2 * (not number), max_size=5, unique=True))
        residents = tuple(draw(workloads(name)) for name in names)
        wait = draw(st.sampled_from([0.0, 0.029, 0.3, 0.9][2 * (not number) :]))
        hosts.append(FleetHost(f"h{number}", draw(st.sampled_from([4, 8, 32])), wait, residents))
    return [*hosts, FleetHost("empty", draw(st.sampled_from([2, 8, 64])), 0.0, ())]


@st.composite
def pasts(draw: st.DrawFn) -> Lately:
    hosts = st.sampled_from(["h0", "h1", "h2", "h3", "empty"])
    been = draw(st.frozensets(st.tuples(st.sampled_from(NAMES), hosts), max_size=15))
    return Lately(been, draw(st.frozensets(hosts, max_size=1)))


def followed(hosts: list[FleetHost], move: AdvisedMove) -> list[FleetHost]:
    """The fleet in which the move had the effect that was simulated."""
    (source,) = [host for host in hosts if host.name == move.source]
    (goes,) = [each for each in source.residents if each.name == move.workload]
    after = []
    for host in hosts:
        if host.name == move.source:
            left = tuple(each for each in host.residents if each is not goes)
            host = replace(host, wait=move.source_wait[1], residents=left)
        elif host.name == move.target:
            host = replace(host, wait=move.target_wait[1], residents=(*host.residents, goes))
        after.append(host)
    return after


@settings(max_examples=300)
@given(fleets(), pasts())
def test_nobody_ends_worse_beyond_the_margins_and_the_past_is_respected(
    hosts: list[FleetHost], lately: Lately
) -> None:
    move = hint(hosts, lately)
    if move is None:
        return
    by_name = {host.name: host for host in hosts}
    source, target = by_name[move.source], by_name[move.target]
    (goes,) = [each for each in source.residents if each.name == move.workload]
    there = wait_with(target, target.vcpus + goes.vcpus, target.runnable_cores + goes.runnable_cores)
    assert source is not target
    assert move.source_wait[1] <= source.wait * (1 - WORTH)
    assert move.target_wait[1] == there <= TARGET_AT_MOST
    assert there <= goes.wait + WORKLOAD_WORSE_AT_MOST
    assert goes.may_move
    assert goes.blame_cores > goes.waiting_cores
    assert not isinstance(fit(target, goes), Refused)
    assert (move.workload, move.target) not in lately.within_a_day
    assert not {move.source, move.target} & lately.unsettled


@settings(max_examples=200)
@given(fleets())
def test_another_move_is_named_once_the_best_one_would_be_a_return(hosts: list[FleetHost]) -> None:
    move = hint(hosts, Lately())
    if move is not None:
        there = frozenset({(move.workload, move.target)})
        other = hint(hosts, Lately(within_a_day=there))
        assert other is None or (other.workload, other.target) not in there


@given(fleets())
def test_a_fleet_that_follows_comes_to_rest_and_nothing_ever_comes_back(hosts: list[FleetHost]) -> None:
    been = frozenset((each.name, host.name) for host in hosts for each in host.residents)
    most = len(been) * len(hosts)
    for _ in range(most + 1):
        move = hint(hosts, Lately(within_a_day=been))
        if move is None:
            break
        assert (move.workload, move.target) not in been
        been |= {(move.workload, move.target)}
        hosts = followed(hosts, move)
    assert hint(hosts, Lately(within_a_day=been)) is None


@given(fleets(), pasts(), st.randoms(use_true_random=False))
def test_the_order_in_which_a_fleet_is_told_changes_nothing(
    hosts: list[FleetHost], lately: Lately, chance: Random
) -> None:
    shuffled = sorted(hosts, key=lambda _: chance.random())
    assert hint(shuffled, lately) == hint(hosts, lately)


@given(st.integers(1, 128), st.integers(1, 512), st.floats(0, 512), st.floats(0, 512))
def test_more_load_never_waits_less(cores: int, vcpus: int, one: float, other: float) -> None:
    less, more = sorted((one, other))
    vcpus = max(vcpus, int(more) + 1)
    fewer_wait = less * queued_part(cores, vcpus, less)
    assert 0 <= fewer_wait <= more * queued_part(cores, vcpus, more) + 1e-6
    assert 0 <= queued_part(cores, vcpus, more) <= 1
