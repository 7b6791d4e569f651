"""What limits used and stopped between two looks, on files that look like v2 groups."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dasec.bandwidth.rule import caps_of_all
from dasec.hosts.threads.limits import LimitLooks
from dasec.hosts.threads.thread import HeldKnob, ManagedThread, WeightPlace
from dasec.knobs.groups import knob_of_group
from dasec.knobs.quotas import QUOTA
from dasec.knobs.weights import WEIGHT_V2
from dasec.linux.cgroupfs import Hierarchy
from dasec.linux.procfs import KeptThread
from dasec.model import (
    NO_KNOBS,
    Core,
    Limits,
    Period,
    Snapshot,
    Topology,
    Vcpu,
    VcpuId,
    Workload,
    WorkloadKnobs,
)
from dasec.period import between

VCPU = VcpuId(1, 1, 7)
HOME, OWN = "slice/vm", "slice/vm/vcpu0"
NO_QUOTA = "max 100000"
LOOK_NS = 80_000_000
US = 1_000


@dataclass
class Vm:
    """A VM with one vCPU in a group of its own, in a slice; counters only rise, as the kernel's."""

    root: Path
    stopped_us: dict[str, int] = field(default_factory=dict)
    homes: dict[str, str] = field(default_factory=lambda: {"vm": f"/{HOME}"})

    def __post_init__(self) -> None:
        for group in ("slice", HOME, OWN):
            (self.root / group).mkdir()
            self.limit(group, NO_QUOTA)
            self.stop(group, 0)
        place = WeightPlace(WEIGHT_V2, f"/{OWN}", str(self.root / OWN / "cpu.weight"))
        vcpu = Vcpu(VCPU, "CPU 0", frozenset())
        kept = KeptThread(os.getpid(), os.getpid())
        kept.close()  # nothing here reads a thread
        self.thread = ManagedThread(vcpu, kept, 0, Core(0), NO_KNOBS, f"/{OWN}", place, workload="vm")
        self.looks = LimitLooks(Hierarchy(2, str(self.root), "/"))
        self.clock_ns = 0
        self._before = self._snapshot()

    def limit(self, group: str, quota: str) -> None:
        (self.root / group / "cpu.max").write_text(quota)

    def stop(self, group: str, for_us: int) -> None:
        """Its quota stops its threads for so long, who run for as long, too."""
        self.stopped_us[group] = self.stopped_us.get(group, 0) + for_us
        counted = f"usage_usec {self.stopped_us[group]}\nthrottled_usec {self.stopped_us[group]}\n"
        (self.root / group / "cpu.stat").write_text(counted)

    def cap(self, ppm: int) -> None:
        ref = knob_of_group(QUOTA, str(self.root / OWN / "cpu.max"), VCPU)
        quota = str(QUOTA.native(ppm))
        self.limit(OWN, quota)
        self.thread.hold(HeldKnob(ref, NO_QUOTA, quota, NO_QUOTA, ppm))

    def free(self) -> None:
        self.limit(OWN, NO_QUOTA)
        self.thread.drop(QUOTA)

    def leave_home(self) -> None:
        """There is no group around all of its threads any more."""
        self.homes = {}

    def look(self) -> Limits:
        """What a period says."""
        now = self._snapshot()
        period, self._before = between(0, self._before, now), now
        return period.limits["vm"]

    def is_limited(self) -> bool:
        return bool(self._snapshot().limits)

    def _snapshot(self) -> Snapshot:
        self.clock_ns += LOOK_NS
        self.looks.follow(self.homes, [self.thread])
        return Snapshot(self.clock_ns, Topology((), {}), (), {}, {}, self.looks.take())


@pytest.fixture
def vm(tmp_path: Path) -> Vm:
    return Vm(tmp_path)


def test_a_cap_that_comes_again_stopped_nobody_while_it_was_away(vm: Vm) -> None:
    vm.limit(HOME, "200000 100000")
    vm.look()
    vm.cap(500_000)
    vm.stop(OWN, 30_000)
    assert vm.look().own[VCPU].throttled_ns == 30_000 * US
    vm.free()
    assert vm.look().own[VCPU].throttled_ns == 0
    vm.cap(500_000)
    assert vm.look().own[VCPU].throttled_ns == 0
    vm.stop(OWN, 20_000)
    assert vm.look().own[VCPU].throttled_ns == 20_000 * US


@pytest.mark.parametrize("lift", [lambda vm: vm.limit(HOME, NO_QUOTA), Vm.leave_home], ids=["limit", "group"])
def test_caps_go_with_the_limit_for_which_they_were_set(vm: Vm, lift: Callable[[Vm], None]) -> None:
    workload = Workload("vm", 1024, (vm.thread.vcpu,))
    vm.limit(HOME, "200000 100000")
    vm.look()
    vm.cap(500_000)
    lift(vm)
    made = Period(0, LOOK_NS, Topology((), {}), (workload,), {}, {}, {}, {"vm": vm.look()})
    assert caps_of_all(made, {}, ()).wanted == {"vm": WorkloadKnobs({VCPU: 0})}
    vm.free()
    assert not vm.is_limited()


def test_what_an_earlier_daemons_caps_stopped_is_not_counted_again(tmp_path: Path) -> None:
    (tmp_path / "earlier").mkdir()
    vm = Vm(tmp_path / "earlier", {OWN: 3_600_000_000})
    vm.limit(HOME, "200000 100000")
    vm.look()
    vm.cap(500_000)
    vm.stop(OWN, 5_000)
    assert vm.look().own[VCPU].throttled_ns == 5_000 * US


def test_when_another_group_has_the_tightest_limit_its_past_is_not_this_periods(vm: Vm) -> None:
    vm.stop("slice", 3_600_000_000)
    vm.limit(HOME, "200000 100000")
    vm.look()
    vm.stop(HOME, 10_000)
    seen = vm.look()
    assert (seen.throttled_ns, seen.used_ns) == (10_000 * US, 10_000 * US)
    vm.limit("slice", "100000 100000")
    seen = vm.look()
    assert (seen.around_ppm, seen.throttled_ns, seen.used_ns) == (1_000_000, 0, 0)
    vm.stop("slice", 10_000)
    seen = vm.look()
    assert (seen.throttled_ns, seen.used_ns) == (10_000 * US, 10_000 * US)


def test_a_quota_that_a_vcpu_is_given_adds_only_what_it_stops_from_then_on(vm: Vm) -> None:
    vm.stop(OWN, 3_600_000_000)
    vm.limit(HOME, "200000 100000")
    vm.look()
    vm.limit(OWN, "50000 100000")
    assert vm.look().throttled_ns == 0
    vm.stop(OWN, 10_000)
    vm.stop(HOME, 7_000)
    assert vm.look().throttled_ns == 17_000 * US
    vm.limit(OWN, NO_QUOTA)
    vm.stop(HOME, 7_000)
    assert vm.look().throttled_ns == 7_000 * US
