"""A mask of ours that its cpuset cuts is still ours: once it is put back and the cpuset is wide again, the
thread may run where it could before us.

On cgroup v1 here, on v2 and in partitions in guests (tests/vm/test_kernels_and_layouts.py).
"""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from dasec.knobs.knob import KnobRef
from dasec.knobs.masks import AFFINITY
from dasec.linux import affinity, cgroupfs, cpus, procfs
from dasec.linux.errors import HierarchyMissing
from dasec.model import Change, Core, Knob, Outcome, Snapshot, VcpuId
from dasec.safety.fate import Fate, judge
from dasec.safety.journal.ledger import Outstanding
from dasec.safety.kernel import LinuxKernel
from dasec.safety.restore import recover
from guests.waiting import wait_for
from tests.contract.stage import MainlineStage, roster

from .cpusets import EVERY_CPU, Cpuset

TWO_CPUS = frozenset({0, 1})

pytestmark = [
    pytest.mark.host,
    pytest.mark.skipif(cpus.online() != TWO_CPUS, reason="speaks of CPUs 0 and 1"),
]

BOTH = (0, 1)
ONE = frozenset({Core(1)})
EVERY_CORE = frozenset(map(Core, BOTH))


@dataclass
class World:
    """A thread in a cpuset, a host that holds its mask, and a way to narrow the cpuset to CPU 0."""

    stage: MainlineStage
    vcpu: VcpuId
    narrow: Callable[[], None]
    widen: Callable[[], None]
    directory: Path

    def look(self) -> Snapshot:
        return self.stage.mainline.observe(roster([self.vcpu]))

    def pin(self, cores: frozenset[Core]) -> Outcome:
        change = Change(self.vcpu, Knob.AFFINITY, frozenset(), cores, "test")
        return self.stage.mainline.apply([change])[0].outcome

    def mask(self) -> tuple[int, ...]:
        return affinity.get(self.vcpu.tid)

    def notices(self) -> str:
        return "\n".join(self.stage.mainline.notices())

    def stop(self) -> None:
        self.stage.mainline.restore()

    def die(self) -> None:
        """And the keeper puts back."""
        self.stage.journal.close()
        restored, _ = recover(self.directory)
        assert restored.failed == restored.left_alone == ()


def ways() -> tuple[str, ...]:
    """How a cpuset becomes narrow here. cgroup v1 has no partitions."""
    try:
        version = cgroupfs.find_hierarchy(controller="cpuset").version
    except HierarchyMissing:
        return ()
    return ("its own CPUs", "root", "isolated") if version == 2 else ("its own CPUs",)


def narrowing(way: str, own: Cpuset, ends: ExitStack) -> tuple[Callable[[], None], Callable[[], None]]:
    """To CPU 0, and back: by itself, or because a partition takes CPU 1 away from all others."""
    if way == "its own CPUs":
        return lambda: own.allow("0"), lambda: own.allow(EVERY_CPU)
    other = Cpuset("partition")
    ends.callback(other.close)
    other.allow("1")
    return lambda: other.become(way), lambda: other.become("member")


@pytest.fixture(params=ways())
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    with ExitStack() as ends:
        own = Cpuset("vm")
        ends.callback(own.close)
        narrow, widen = narrowing(request.param, own, ends)
        stage = MainlineStage(tmp_path, dry_run=False, own_groups=False)
        ends.callback(stage.close)
        vcpu = stage.spawn()
        own.take_in(vcpu.pid)
        one = World(stage, vcpu, narrow, widen, tmp_path)
        one.look()
        yield one


# 8f9ea86fdf99
KEEPS_WHAT_WAS_ASKED_FOR = tuple(map(int, platform.release().split(".")[:2])) >= (6, 2)


def test_a_mask_of_ours_is_gone_for_good_when_we_stop_in_a_narrow_cpuset(world: World) -> None:
    assert world.pin(ONE) is Outcome.APPLIED
    world.look()
    world.narrow()
    assert world.mask() == (0,)
    world.look()
    assert "somebody else" not in world.notices()
    world.stop()
    world.widen()
    assert world.mask() == BOTH


def test_nor_does_it_come_back_where_we_had_no_time_to_see_the_narrow_cpuset(world: World) -> None:
    world.pin(ONE)
    world.look()
    world.narrow()
    world.stop()
    world.widen()
    assert world.mask() == BOTH


def test_nor_where_the_daemon_dies_in_it(world: World) -> None:
    world.pin(ONE)
    world.look()
    world.narrow()
    world.die()
    world.widen()
    assert world.mask() == BOTH


def test_a_policy_sees_where_the_thread_may_run_now_and_again_when_the_cpuset_is_wide(world: World) -> None:
    world.pin(ONE)
    world.look()
    world.narrow()
    zero = frozenset({Core(0)})
    seen = world.look()
    assert (seen.workloads[0].vcpus[0].allowed, seen.knobs[world.vcpu].affinity) == (zero, zero)
    assert world.pin(ONE) is Outcome.REJECTED
    assert world.pin(zero) is Outcome.APPLIED
    world.widen()
    assert world.look().workloads[0].vcpus[0].allowed == {Core(0), Core(1)}
    world.stop()
    assert world.mask() == BOTH


@pytest.mark.skipif(not KEEPS_WHAT_WAS_ASKED_FOR, reason="a cpuset that changes resets every mask here")
def test_who_gets_back_all_that_it_may_use_has_its_own_mask_again_and_follows_its_cpuset(
    world: World,
) -> None:
    assert world.pin(ONE) is Outcome.APPLIED
    assert len(world.stage.journal.outstanding()) == 1
    assert world.pin(EVERY_CORE) is Outcome.APPLIED
    assert (world.mask(), world.stage.journal.outstanding()) == (BOTH, ())
    assert world.look().knobs[world.vcpu].affinity == EVERY_CORE
    assert world.pin(ONE) is Outcome.APPLIED, "it stays ours to write"
    assert world.mask() == (1,)


@pytest.mark.skipif(not KEEPS_WHAT_WAS_ASKED_FOR, reason="a cpuset that changes resets every mask here")
def test_what_somebody_else_has_set_is_theirs_and_comes_back_with_the_cpuset(world: World) -> None:
    world.pin(frozenset({Core(0)}))
    world.look()
    affinity.put(world.vcpu.tid, (1,))
    world.look()
    assert "somebody else wrote 1 over our 0:" in world.notices()
    world.narrow()
    world.stop()
    world.widen()
    assert world.mask() == (1,)


def test_of_a_thread_that_has_ended_every_mask_is_in_force_and_it_still_proves_whose_number_that_is() -> None:
    """On v1 it reads as one of the top cpuset, while its mask is still cut by its own."""
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        vcpu = VcpuId(sleeper.pid, sleeper.pid, procfs.read_stat(sleeper.pid, sleeper.pid).start_ticks)
        affinity.put(sleeper.pid, (1,))
        sleeper.kill()
        wait_for(lambda: procfs.read_stat(sleeper.pid, sleeper.pid).has_ended)
        ref = KnobRef(vcpu, AFFINITY)
        assert LinuxKernel().in_force(ref, ()) == (1,)
        assert judge(Outstanding(ref, (), ((0,),)), LinuxKernel()).fate not in (Fate.VANISHED, Fate.FAILED)
