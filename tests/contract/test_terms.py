"""Threads that somebody else keeps: every host takes the one that discovery saw, on its terms."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dasec.model import Change, Core, Knob, Outcome, VcpuId
from dasec.roster import RosterEntry, Terms

from .stage import Stage
from .test_host import HOSTS, build, skip_unless_capable


@pytest.fixture(params=HOSTS)
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    made = build(request.param, tmp_path)
    yield made
    made.close()


def kept(vcpu: VcpuId, cores: frozenset[Core] | None = None, start: int | None = None) -> RosterEntry:
    terms = Terms(vcpu.start_ticks if start is None else start, cores)
    return RosterEntry("vm", None, ((vcpu.pid, vcpu.tid),), (terms,))


def pin(vcpu: VcpuId, core: int) -> Change:
    return Change(vcpu, Knob.AFFINITY, frozenset(), frozenset({Core(core)}), "test")


def test_a_thread_that_only_has_the_number_is_left_out(stage: Stage) -> None:
    vcpu = stage.spawn()
    snapshot = stage.host.observe([kept(vcpu, start=vcpu.start_ticks + 1)])
    assert (snapshot.counters, snapshot.knobs) == ({}, {})
    assert list(stage.host.observe([kept(vcpu)]).counters) == [vcpu]


def test_the_terms_of_the_first_workload_count(stage: Stage) -> None:
    skip_unless_capable(stage, Knob.AFFINITY)
    vcpu = stage.spawn()
    anywhere = RosterEntry("all", None, ((vcpu.pid, vcpu.tid),))
    for _ in range(2):
        snapshot = stage.host.observe([kept(vcpu, frozenset({Core(0)})), anywhere])
        assert snapshot.workloads[0].vcpus[0].allowed == frozenset({Core(0)})


def test_cores_outside_the_terms_are_refused(stage: Stage) -> None:
    skip_unless_capable(stage, Knob.AFFINITY)
    vcpu = stage.spawn()
    snapshot = stage.host.observe([kept(vcpu, frozenset({Core(0)}))])
    assert snapshot.workloads[0].vcpus[0].allowed == frozenset({Core(0)})
    assert [one.outcome for one in stage.host.apply([pin(vcpu, 1)])] == [Outcome.REJECTED]


def test_terms_may_change_while_the_thread_is_managed(stage: Stage) -> None:
    skip_unless_capable(stage, Knob.AFFINITY)
    vcpu = stage.spawn()
    stage.host.observe([kept(vcpu, frozenset({Core(0)}))])
    snapshot = stage.host.observe([kept(vcpu, frozenset({Core(1)}))])
    assert snapshot.workloads[0].vcpus[0].allowed == frozenset({Core(1)})
    assert [one.outcome for one in stage.host.apply([pin(vcpu, 1)])] == [Outcome.APPLIED]
