"""A fleet as columns: it chooses the host that simulating one host after the other would choose."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasec.reservations import Ask, CpuClass, Principle, Reservations, allocate, release
from dasec.reservations.take import CpuPlace
from experiments.studies.wysiwyg.nodes import Nodes

CPUS = 4


def fleet(seed: int, hosts: int) -> list[Reservations]:
    """Hosts on which some came, of both classes, and some went."""
    rng = random.Random(seed)
    places = {cpu: CpuPlace(0, cpu) for cpu in range(CPUS)}
    found = []
    for _ in range(hosts):
        host = Reservations(places, apart=rng.random() < 0.8)
        for number in range(rng.randrange(8)):
            asked = Ask(f"c{number}", rng.randrange(1, 9) * 250, rng.choice(list(CpuClass)[:2]))
            after = allocate(host, asked, rng.choice(list(Principle)))
            host = after if isinstance(after, Reservations) else host
            if host.grants and rng.random() < 0.3:
                host = release(host, rng.choice(list(host.grants)))
        found.append(host)
    return found


def one_after_the_other(hosts: list[Reservations], ask: Ask, principle: Principle) -> int | None:
    """The best host by an allocation on each."""
    scores = []
    for number, host in enumerate(hosts):
        after = allocate(host, ask, principle)
        if isinstance(after, Reservations):
            grant = after.grants[ask.name]
            beside = sum(host.used_parts.get(cpu, 0) for cpu, _ in grant.parts)
            scores.append((-len(grant.exclusive), beside, -host.free_millicores, number))
    return min(scores)[-1] if scores else None


@given(
    seed=st.integers(0, 10**6),
    hosts=st.integers(1, 12),
    quarters=st.integers(1, 4 * CPUS),
    principle=st.sampled_from(Principle),
)
def test_all_at_once_is_the_same_as_one_after_the_other(
    seed: int, hosts: int, quarters: int, principle: Principle
) -> None:
    states = fleet(seed, hosts)
    ask = Ask("coming", 250 * quarters, CpuClass.EXCLUSIVE)
    assert Nodes(states).best(ask, principle) == one_after_the_other(states, ask, principle)


@pytest.mark.parametrize("seed", range(3))
def test_a_host_that_changed_is_judged_by_what_it_became(seed: int) -> None:
    before, after = fleet(seed, 9), fleet(seed + 100, 9)
    nodes = Nodes(before)
    for number, host in enumerate(after):
        nodes.put(number, host)
    emptiest = max(range(9), key=lambda number: (after[number].free_millicores, -number))
    assert nodes.emptiest == emptiest
    assert nodes.most_free_millicores == after[emptiest].free_millicores
    ask = Ask("coming", 1250, CpuClass.EXCLUSIVE)
    assert nodes.best(ask, Principle.HARD) == one_after_the_other(after, ask, Principle.HARD)
