"""The fake kernel is exact: what a test says happened is what a snapshot says."""

from __future__ import annotations

import pytest

from dasec.hosts.fake.fake import DEFAULT_SLICE_NS, FakeHost, Stretch
from dasec.model import Change, Core, Counters, Knob, Outcome, ThreadState, VcpuId
from dasec.roster import RosterEntry

MS = 1_000_000
PAIR = ((1, 1), (1, 2))
ROSTER = (RosterEntry("vm", 2048, PAIR),)


@pytest.fixture
def host() -> FakeHost:
    return FakeHost(cores=2, nodes=(0, 1))


def slices(host: FakeHost, vcpu: VcpuId, value: int) -> Outcome:
    (result,) = host.apply([Change(vcpu, Knob.RESCHEDULING_LATENCY, 0, value, "test")])
    return result.outcome


def test_time_and_counters_move_as_told_and_the_unnamed_sleep(host: FakeHost) -> None:
    one, two = (host.spawn(*numbers, core=core) for core, numbers in enumerate(PAIR))
    host.advance(80 * MS, [(one, Stretch(50 * MS, 20 * MS, 7, ThreadState.READY))])
    host.advance(80 * MS, [(one, Stretch(10 * MS, 0, 1, ThreadState.RUNNING))])
    snapshot = host.observe(ROSTER)
    assert snapshot.clock_ns == 160 * MS
    assert snapshot.counters[one] == Counters(60 * MS, 20 * MS, 8, ThreadState.RUNNING, Core(0))
    assert snapshot.counters[two] == Counters(0, 0, 0, ThreadState.IDLE, Core(1))


def test_a_new_thread_has_the_kernels_defaults(host: FakeHost) -> None:
    vcpu = host.spawn(1, 1)
    snapshot = host.observe(ROSTER)
    assert snapshot.knobs[vcpu] == (1024, DEFAULT_SLICE_NS, frozenset({0, 1}))
    assert (snapshot.workloads[0].share, dict(snapshot.topology.node_of)) == (2048, {0: 0, 1: 1})


def test_an_id_that_is_given_out_again_is_another_thread(host: FakeHost) -> None:
    first = host.spawn(1, 1)
    host.observe(ROSTER)
    assert slices(host, first, 4 * MS) is Outcome.APPLIED
    host.end(first)
    second = host.spawn(1, 1)
    assert second != first
    assert slices(host, first, 5 * MS) is Outcome.VANISHED
    snapshot = host.observe(ROSTER)
    assert list(snapshot.knobs) == [second]
    assert snapshot.knobs[second].rescheduling_latency_ns == DEFAULT_SLICE_NS
    assert host.restore().put_back == 0


def test_a_living_id_is_not_given_out_twice(host: FakeHost) -> None:
    host.spawn(1, 1)
    with pytest.raises(ValueError, match="lives"):
        host.spawn(1, 1)


def test_a_core_that_is_unplugged_leaves_the_topology(host: FakeHost) -> None:
    host.unplug(1)
    assert host.observe(()).topology.cores == (0,)


def test_every_write_is_on_record(host: FakeHost) -> None:
    vcpu = host.spawn(1, 1)
    host.observe(ROSTER)
    slices(host, vcpu, 4 * MS)
    slices(host, vcpu, 5 * MS)
    assert [change.new for change in host.writes] == [4 * MS, 5 * MS]


def test_threads_that_are_not_fair_are_left_out(host: FakeHost) -> None:
    host.spawn(1, 1, policy="fifo")
    vcpu = host.spawn(1, 2)
    assert list(host.observe(ROSTER).counters) == [vcpu]
    host.turn(vcpu, "deadline")
    assert slices(host, vcpu, 4 * MS) is Outcome.REJECTED
    assert host.observe(ROSTER).counters == {}
