"""The freestanding guest under TCG and, where that serves, KVM: it boots, answers, counts what it does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from guests.bare.client import Client, Kind, Request, VcpuStatistics
from guests.bare.machine import Accelerator, Bare, Machine, best_accelerator, running, why_not_kvm

VCPUS = 4
HELPERS = range(1, VCPUS)
REQUESTS = 40
WORK = {"serial_us": 20, "helper_us": 30, "tail_us": 10}

pytestmark = pytest.mark.vm


@pytest.fixture(scope="module", params=list(Accelerator))
def accelerator(request: pytest.FixtureRequest) -> Accelerator:
    asked: Accelerator = request.param
    if asked is Accelerator.KVM and (why := why_not_kvm()) is not None:
        pytest.skip(why)  # also in CI: TCG is the way there
    return asked


@pytest.fixture(scope="module", params=list(Machine))
def guest(request: pytest.FixtureRequest, accelerator: Accelerator) -> Iterator[Bare]:
    with running(accelerator, VCPUS, machine=request.param) as guest:
        yield guest


def statistics(client: Client) -> list[VcpuStatistics]:
    return [client.statistics(vcpu) for vcpu in range(VCPUS)]


def served(guest: Bare, request: Request) -> tuple[list[VcpuStatistics], list[VcpuStatistics]]:
    """Before and after so many requests, one after the other."""
    with closing(Client(guest.address)) as client:
        before = statistics(client)
        for _ in range(REQUESTS):
            client.serve(request)
        return before, statistics(client)


def posted(before: list[VcpuStatistics], after: list[VcpuStatistics]) -> list[list[int]]:
    """Messages of each vCPU to each."""
    return [
        [new - old for old, new in zip(one.posted, other.posted, strict=True)]
        for one, other in zip(before, after, strict=True)
    ]


def test_all_vcpus_come_up_and_are_threads_of_the_host(guest: Bare) -> None:
    assert guest.online == VCPUS
    assert sorted(guest.vcpu_threads()) == list(range(VCPUS))


def test_a_request_for_all_helpers_wakes_each_and_the_last_one_answers(guest: Bare) -> None:
    before, after = served(guest, Request(Kind.FANOUT, straggler_us=50, **WORK))
    counts = posted(before, after)
    assert counts[0] == [0, *(REQUESTS for _ in HELPERS)]
    assert sum(counts[helper][0] for helper in HELPERS) == REQUESTS
    assert all(sum(counts[helper]) == counts[helper][0] for helper in HELPERS)
    assert [new.jobs - old.jobs for old, new in zip(before, after, strict=True)] == [REQUESTS] * VCPUS


@pytest.mark.parametrize("kind", [Kind.SINGLE, Kind.CONVOY])
def test_a_request_for_one_helper_goes_to_each_in_turn(guest: Bare, kind: Kind) -> None:
    counts = posted(*served(guest, Request(kind, lock_us=20, **WORK)))
    assert sum(counts[0]) == REQUESTS
    assert max(counts[0][1:]) - min(counts[0][1:]) <= 1
    assert [counts[helper][0] for helper in HELPERS] == counts[0][1:]


def test_a_request_in_a_pipeline_goes_from_helper_to_helper(guest: Bare) -> None:
    counts = posted(*served(guest, Request(Kind.PIPELINE, **WORK)))
    expected = [[0] * VCPUS for _ in range(VCPUS)]
    for vcpu in range(VCPUS):
        expected[vcpu][(vcpu + 1) % VCPUS] = REQUESTS
    assert counts == expected


def test_whoever_slept_was_woken_by_one_who_rang(guest: Bare) -> None:
    _, after = served(guest, Request(Kind.FANOUT, **WORK))
    for woken, its in enumerate(after):
        for waker, other in enumerate(after):
            assert its.woken_by[waker] <= other.rang[woken]
            # A lock that is given up rings without a message; in closed loop no lock is waited for.
            assert other.rang[woken] <= other.posted[woken]
        assert its.woken <= its.halts <= its.woken + 1  # the present halt has not ended
        assert its.bells <= sum(other.rang[woken] for other in after)
    for helper in HELPERS:
        assert after[helper].woken_by[0] >= REQUESTS / 4


def test_the_host_sees_the_vcpus_sleep_as_often_as_the_guest_says(guest: Bare) -> None:
    threads = guest.vcpu_threads()
    before = {vcpu: voluntary_switches(guest.pid, tid) for vcpu, tid in threads.items()}
    old, new = served(guest, Request(Kind.FANOUT, **WORK))
    for helper in HELPERS:
        slept = new[helper].woken - old[helper].woken
        assert voluntary_switches(guest.pid, threads[helper]) - before[helper] >= slept / 2


def test_background_computes_beside_the_service_and_a_holder_takes_the_lock() -> None:
    options = "helpers=2 background=14 burst_us=2000 gap_us=1000 holder=3 hold_us=2000 hold_gap_us=1000"
    with running(best_accelerator(), VCPUS, options) as guest:
        old, new = served(guest, Request(Kind.CONVOY, lock_us=500, **WORK))
    for helper in (1, 2):
        assert new[helper].quanta > old[helper].quanta
        assert new[helper].woken_by_timer + new[helper].timers > 0
    assert new[3].holds > old[3].holds
    assert sum(one.lock_waits for one in new) > 0
    assert new[3].jobs == new[3].quanta == 0
    assert sum(posted(old, new)[0]) == REQUESTS


def voluntary_switches(pid: int, tid: int) -> int:
    """How often the thread went to sleep."""
    status = Path(f"/proc/{pid}/task/{tid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("voluntary_ctxt_switches:"))
    return int(line.split()[1])
