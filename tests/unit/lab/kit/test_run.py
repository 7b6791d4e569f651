"""One run with an application that is a state machine: what it is told in which order, what comes of it."""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from dasec.errors import Refusal
from dasec.lab.kit import counters
from dasec.lab.kit.arms import CONTROL, NONE
from dasec.lab.kit.bench import Bench, RunPlan
from dasec.lab.kit.counters import CpuUsed, cores_between
from dasec.lab.kit.driver import OwnCpu, Place, WorkDone, WorkKind, WorkOrder
from dasec.lab.kit.errors import failure
from dasec.lab.kit.home import TenantHome
from dasec.lab.kit.layout import GroupLayout
from dasec.lab.kit.run import BEGINS_S, START_OPTION, measure_one
from dasec.lab.kit.scenario import Scenario, Tenant, Timing
from dasec.lab.kit.tree import Tree
from dasec.lab.load_tool import latencies

TIMING = Timing(seconds=0.1, warmup_s=0.05, lead_s=0.0)
STEPS = {"": "start", "start": "up", "up": "begin", "begin": "finish", "finish": "stop", "stop": "stop"}


@dataclass
class Machine:
    """Goes from step to step, and refuses another order of them. It is told its start too late so often."""

    order: WorkOrder
    late: int
    step: str = "start"

    def go(self, step: str) -> None:
        assert STEPS[self.step] == step, f"{step} after {self.step}"
        self.step = step

    def await_up(self) -> None:
        self.go("up")

    def pids(self) -> tuple[int, ...]:
        return (os.getpid(),)

    def begin(self, start_ns: int) -> None:
        assert start_ns > 0
        self.go("begin")

    def ensure_alive(self) -> None:
        if self.late and self.step == "begin":
            raise failure(f"one: ended early, exit status 1: {START_OPTION}: passed 7 us before")

    def finish(self) -> WorkDone:
        self.go("finish")
        return WorkDone(2, "requests", 0.1, latencies([1_000_000, 3_000_000]))

    def stop(self) -> None:
        self.step = "stop"


@dataclass
class Application:
    """Its driver, which remembers all that it started."""

    late: int = 0
    name: str = "machine"
    kind: WorkKind = WorkKind.SERVICE
    started: list[Machine] = field(default_factory=list)

    def missing(self) -> str | None:
        return None

    def vcpus(self, order: WorkOrder) -> int:
        return order.threads

    def critical(self, order: WorkOrder) -> tuple[str, ...]:  # noqa: ARG002  # the interface of drivers
        return ()

    def start(self, order: WorkOrder, place: Place) -> Machine:  # noqa: ARG002  # the interface of drivers
        self.started.append(Machine(order, max(0, self.late - len(self.started))))
        return self.started[-1]


class NoGroups(TenantHome):
    """Lives where it is."""

    __slots__ = ()

    def settle(self, pids: object) -> None:
        """Nowhere else."""


def bench_of(application: Application, folder: Path, *, exact: bool = False) -> Bench:
    tenant = Tenant("one-0", application, 1, 100.0, is_exact=exact)
    plan = RunPlan(
        Scenario(2, (tenant, replace(tenant, name="one-1"))), GroupLayout.VM, TIMING, (NONE, CONTROL), 1, 1
    )
    return Bench(
        plan,
        Tree(1, folder / "groups"),
        folder / "files",
        1.0,
        homes=lambda plan, tree, arm: nullcontext(  # noqa: ARG005
            tuple(NoGroups(tree, plan.layout, one) for one in plan.scenario.tenants)
        ),
    )


def test_a_run_takes_every_application_from_its_start_to_its_stop(tmp_path: Path) -> None:
    application = Application()
    found = measure_one(bench_of(application, tmp_path), NONE, 0, lambda: None)
    assert [one.step for one in application.started] == ["stop", "stop"]
    assert [one.name for one in found.tenants] == ["one-0", "one-1"]
    assert [one.latencies.count for one in found.tenants] == [2, 2]
    assert found.tenants[0].throughput_per_s == 20
    assert found.seconds == pytest.approx(0.1, rel=5)
    assert list((tmp_path / "files").iterdir()) == []


def test_arms_of_a_repetition_ask_the_same_and_no_two_workloads_do(tmp_path: Path) -> None:
    application = Application()
    bench = bench_of(application, tmp_path)
    for arm in (NONE, CONTROL):
        measure_one(bench, arm, 3, lambda: None)
    orders = [replace(one.order, folder=Path()) for one in application.started]
    assert orders[:2] == orders[2:]
    assert orders[0].seed != orders[1].seed


def test_who_was_told_too_late_gets_more_time_in_a_run_of_its_own(tmp_path: Path) -> None:
    application = Application(late=2)
    measure_one(bench_of(application, tmp_path), NONE, 0, lambda: None)
    assert len(application.started) == 2 * 2
    assert {one.step for one in application.started} == {"stop"}


def test_who_is_always_too_late_is_told_so(tmp_path: Path) -> None:
    application = Application(late=99)
    with pytest.raises(Refusal, match=f"not told within {BEGINS_S[-1]:g} s"):
        measure_one(bench_of(application, tmp_path), NONE, 0, lambda: None)
    assert {one.step for one in application.started} == {"stop"}


def test_other_threads_than_the_scenario_has_are_not_measured(tmp_path: Path) -> None:
    application = Application()
    with pytest.raises(Refusal, match="one-0: 1 vCPU threads expected among"):
        measure_one(bench_of(application, tmp_path, exact=True), NONE, 0, lambda: None)
    assert {one.step for one in application.started} == {"stop"}


SERVER, TOOL = 7, 8
BEGIN = CpuUsed(0, {(SERVER, 7): 1.0, (TOOL, 8): 0.5, (TOOL, 9): 2.0}, frozenset({(TOOL, 9)}))
OWN = OwnCpu(0.31, 0.19, frozenset({TOOL}))


def test_a_thread_that_ends_while_it_is_looked_at_has_no_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its time would be the workload's, and the background's no more."""

    def ended(pid: int, tid: int) -> str:
        raise ProcessLookupError(pid, tid)

    assert CpuUsed.now([os.getpid()]).spent_s
    monkeypatch.setattr(counters, "name_of", ended)
    assert CpuUsed.now([os.getpid()]).spent_s == {}


def test_cpu_time_is_what_was_seen_from_outside_while_all_threads_lived() -> None:
    end = CpuUsed(2_000_000_000, {(SERVER, 7): 1.2, (TOOL, 8): 0.7, (TOOL, 9): 2.4}, BEGIN.background)
    for own in ([OWN], []):
        used = cores_between(BEGIN, end, own)
        assert (used.cores, used.background) == pytest.approx((0.4, 0.2))


def test_a_process_that_has_ended_counts_by_its_own_account_and_the_others_as_they_were_seen() -> None:
    end = CpuUsed(2_000_000_000, {(SERVER, 7): 1.2, (TOOL, 8): 0.7}, frozenset())
    used = cores_between(BEGIN, end, [OWN])
    assert (used.cores, used.background) == pytest.approx((0.41, 0.19))
    silent = cores_between(BEGIN, end, [])
    assert (silent.cores, silent.background) == pytest.approx((0.2, 0.0))


def test_of_several_processes_that_have_ended_each_counts_by_its_own_account() -> None:
    """A server that asks itself ends by itself, as the background beside it does."""
    asks_itself = OwnCpu(0.07, 0.0, frozenset({SERVER}), waiting=0.5)
    used = cores_between(BEGIN, CpuUsed(2_000_000_000, {}, frozenset()), [OWN, asks_itself])
    assert (used.cores, used.background, used.waiting) == pytest.approx((0.38, 0.19, 0.5), abs=1e-5)
    end = CpuUsed(2_000_000_000, {(TOOL, 8): 0.7, (TOOL, 9): 2.4}, BEGIN.background)
    used = cores_between(BEGIN, end, [OWN, asks_itself])
    assert (used.cores, used.background) == pytest.approx((0.37, 0.2))


def test_how_many_threads_waited_is_not_known_if_one_ended_meanwhile_and_does_not_tell() -> None:
    begin = CpuUsed(0, {(TOOL, 8): 0.5, (TOOL, 9): 2.0}, frozenset(), {(TOOL, 8): 0.1, (TOOL, 9): 0.0})
    end = CpuUsed(
        2_000_000_000, {(TOOL, 8): 0.7, (TOOL, 9): 2.4}, frozenset(), {(TOOL, 8): 0.7, (TOOL, 9): 1.4}
    )
    assert cores_between(begin, end, [OWN]).waiting == pytest.approx(1.0)
    one = replace(end, spent_s={(TOOL, 8): 0.7}, waited_s={(TOOL, 8): 0.7})
    assert cores_between(begin, one, []).waiting is None
    assert cores_between(begin, one, [replace(OWN, waiting=0.9)]).waiting == pytest.approx(0.9)


def test_a_thread_that_came_counts_from_its_start_and_no_workload_has_used_nothing() -> None:
    end = CpuUsed(1_000_000_000, {(SERVER, 7): 1.0, (SERVER, 10): 0.3}, frozenset())
    assert cores_between(BEGIN, end, []).cores == pytest.approx(0.3)
    assert 0 < cores_between(BEGIN, replace(end, spent_s={}), []).cores < 1e-5
