"""Births that are under way while their parents are put back, on machines with time and without."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from dasec.knobs.knob import KnobRef, Write
from dasec.knobs.slices import SLICE
from dasec.model import VcpuId
from dasec.safety.births import BIRTH_NS, PATIENCE_NS, STALE_NS
from dasec.safety.journal.codec import Bequest
from dasec.safety.journal.ledger import Outstanding
from dasec.safety.restore import put_all_back, put_back

from .knobs_for_tests import open_journal, slice_of, thread
from .small_kernel import DEFAULT_SLICE_NS, SmallKernel

OURS_NS = 4_000_000
PARENT = thread(100)
HELD = Outstanding(slice_of(100), 0, (OURS_NS,))
BEQUEST = Bequest(100, SLICE, OURS_NS, 0, since_ticks=500)
NO_TIME = 0.001
"""Of a CPU for each thread."""


def young(number: int) -> VcpuId:
    return thread(number, start_ticks=1000)


@pytest.fixture
def kernel() -> SmallKernel:
    small = SmallKernel()
    small.start(PARENT)
    small.set(slice_of(100), OURS_NS)
    return small


def with_our_slice(kernel: SmallKernel) -> list[int]:
    return sorted(who.tid for who, one in kernel.threads.items() if one.slice_ns == OURS_NS)


def let_everything_happen(kernel: SmallKernel) -> None:
    for one in kernel.threads.values():
        one.pace, one.blocked_until_ns = 1.0, 0
    while kernel.unborn:
        kernel.pause(0.01)


def test_an_idle_machine_does_not_wait_at_all(kernel: SmallKernel) -> None:
    assert put_back([HELD], (), [BEQUEST], kernel).put_back == 1
    assert kernel.now_ns == 0


def test_a_birth_is_awaited_however_little_time_the_machine_has_for_it(kernel: SmallKernel) -> None:
    kernel.conceive(PARENT, young(3), takes_ns=2_000_000)
    kernel.threads[PARENT].pace = NO_TIME
    done = put_back([HELD], (), [BEQUEST], kernel)
    assert (done.put_back, done.failed) == (2, ())
    assert kernel.now_ns >= 2_000_000 / NO_TIME
    assert kernel.threads[young(3)].slice_ns == DEFAULT_SLICE_NS


def test_a_parent_that_waits_for_memory_or_a_lock_is_not_done_with_it(kernel: SmallKernel) -> None:
    kernel.conceive(PARENT, young(3))
    parent = kernel.threads[PARENT]
    parent.state, parent.blocked_until_ns = "D", 3_000_000_000
    assert put_back([HELD], (), [BEQUEST], kernel).failed == ()
    assert kernel.now_ns >= parent.blocked_until_ns
    assert with_our_slice(kernel) == []


def test_a_parent_that_always_computes_is_awaited_for_the_time_of_a_birth_and_no_longer(
    kernel: SmallKernel,
) -> None:
    kernel.threads[PARENT].ran_ns = 10**12
    kernel.conceive(PARENT, young(3), takes_ns=BIRTH_NS, then="R")
    assert put_back([HELD], (), [BEQUEST], kernel).failed == ()
    let_everything_happen(kernel)
    assert with_our_slice(kernel) == []
    assert BIRTH_NS <= kernel.now_ns <= 3 * (BIRTH_NS + STALE_NS)


def test_time_that_the_hypervisor_took_is_no_progress(kernel: SmallKernel) -> None:
    kernel.steals, kernel.threads[PARENT].pace = 0.9, 0.01
    kernel.conceive(PARENT, young(3), takes_ns=BIRTH_NS, then="R")
    assert put_back([HELD], (), [BEQUEST], kernel).failed == ()
    let_everything_happen(kernel)
    assert with_our_slice(kernel) == []


def test_a_fork_that_copies_large_page_tables_takes_longer(kernel: SmallKernel) -> None:
    """45 ms for 4180 KiB of them: docs/decisions/0035-masks-and-births.md."""
    kernel.page_tables_kib = 4180
    kernel.conceive(PARENT, young(3), takes_ns=45_000_000, then="R")
    assert put_back([HELD], (), [BEQUEST], kernel).failed == ()
    let_everything_happen(kernel)
    assert with_our_slice(kernel) == []


class BehindOurBack(SmallKernel):
    """While the tasks are read for the first time, the youngest has a child and ends."""

    def family(self, pids: frozenset[int]) -> Iterator[tuple[VcpuId, tuple[int, ...]]]:
        listed = list(super().family(pids))
        if young(3) in self.threads:
            self.clone(young(3), young(4))
            self.end(young(3))
        yield from (one for one in listed if one[0] in self.threads)


def test_one_search_that_finds_nobody_is_not_enough() -> None:
    kernel = BehindOurBack()
    kernel.start(PARENT)
    kernel.set(slice_of(100), OURS_NS)
    kernel.clone(PARENT, young(3))
    put_back([HELD], (), [BEQUEST], kernel)
    assert with_our_slice(kernel) == []


def test_a_parent_that_ends_cannot_give_birth(kernel: SmallKernel) -> None:
    parent = kernel.threads[PARENT]
    parent.state, parent.pace = "Z", 0.0
    assert put_back([HELD], (), [BEQUEST], kernel).failed == ()
    assert kernel.now_ns == 0


def test_a_child_that_was_found_is_a_parent_like_any_other(kernel: SmallKernel) -> None:
    child = kernel.clone(PARENT, young(3))
    kernel.conceive(child, young(4), takes_ns=2_000_000)
    kernel.threads[child].pace = NO_TIME
    assert put_back([HELD], (), [BEQUEST], kernel).failed == ()
    let_everything_happen(kernel)
    assert with_our_slice(kernel) == []


def test_who_gets_no_time_at_all_is_reported_and_put_back_by_a_later_restore(
    kernel: SmallKernel, tmp_path: Path
) -> None:
    journal = open_journal(tmp_path)
    kernel.set(slice_of(100), DEFAULT_SLICE_NS)
    journal.begin([Write(slice_of(100), 0, OURS_NS)])
    kernel.set(slice_of(100), OURS_NS)
    newborn = thread(3, start_ticks=10**12)
    kernel.conceive(PARENT, newborn)
    kernel.threads[PARENT].pace = 0.0
    done = put_all_back(journal, kernel)
    assert "still being born" in done.failed[0]
    assert kernel.now_ns >= PATIENCE_NS
    assert [one.ref for one in journal.outstanding()] == [slice_of(100)]
    let_everything_happen(kernel)
    assert with_our_slice(kernel) == [3]
    assert put_all_back(journal, kernel).failed == ()
    assert with_our_slice(kernel) == []
    assert journal.outstanding() == ()
    journal.close()


class Endless(SmallKernel):
    """Process 100 has another child whenever somebody looks, each with our slice; the last one has ended."""

    number = 1000

    def family(self, pids: frozenset[int]) -> Iterator[tuple[VcpuId, tuple[int, ...]]]:
        self.threads.pop(young(self.number), None)
        self.number += 1
        self.start(young(self.number))
        self.set(KnobRef(young(self.number), SLICE), OURS_NS)
        yield from super().family(pids)


def test_a_process_that_never_ends_giving_birth_costs_itself_and_nobody_else() -> None:
    kernel = Endless()
    other = slice_of(200, 200)
    for ref in (HELD.ref, other):
        kernel.start(ref.vcpu)
        kernel.set(ref, OURS_NS)
    bequests = [BEQUEST, BEQUEST._replace(pid=200)]
    done = put_back([HELD, Outstanding(other, 0, (OURS_NS,))], (), bequests, kernel)
    assert len(done.failed) == 1
    assert "slice of thread 100 of process 100" in done.failed[0]


@pytest.mark.parametrize("seed", range(300))
def test_whatever_is_being_born_while_it_is_put_back_nobody_keeps_our_slice(seed: int) -> None:
    """Parents of every kind, births of every length a birth may have, children that have children."""
    chance = random.Random(seed)
    kernel = SmallKernel()
    held = [kernel.start(thread(tid)) for tid in range(100, 100 + chance.randrange(1, 5))]
    for who in held:
        kernel.set(KnobRef(who, SLICE), OURS_NS)
    parents = list(held)
    for number in range(chance.randrange(8)):
        child, parent = young(200 + number), chance.choice(parents)
        if chance.random() < 0.4:
            parents.append(kernel.clone(parent, child))
        elif not any(birth.parent == parent for birth in kernel.unborn):
            kernel.conceive(parent, child, chance.randrange(BIRTH_NS), chance.choice("SRZ"))
    for one in kernel.threads.values():
        one.pace = chance.choice((NO_TIME, 0.05, 1.0))
        if one.state == "R" and chance.random() < 0.2:
            one.state, one.blocked_until_ns = "D", chance.randrange(PATIENCE_NS // 4)
    outstanding = [Outstanding(KnobRef(who, SLICE), 0, (OURS_NS,)) for who in held]
    done = put_back(outstanding, (), [BEQUEST], kernel)
    let_everything_happen(kernel)
    assert done.failed or not with_our_slice(kernel), f"{kernel.threads}"
