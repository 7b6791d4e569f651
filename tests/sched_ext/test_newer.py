"""The whole of it in short, for kernels on which not all of it is tried."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from dasec.bpf.scx import Scheduler, options
from dasec.linux import schedattr
from dasec.linux.sched_ext import SYSFS

from .machine import HOG, NEEDS_SCHED_EXT, Vm, used_meanwhile, wait_for

pytestmark = NEEDS_SCHED_EXT


@pytest.fixture(params=[False, True], ids=["the whole host", "partial"])
def scheduler(vms: dict[str, Vm], request: pytest.FixtureRequest) -> Iterator[tuple[Scheduler, bool]]:
    with Scheduler(options(2), partial=request.param) as loaded:
        yield loaded, request.param
    wait_for("disabled")


def test_it_loads_shares_and_ends(scheduler: tuple[Scheduler, bool], vms: dict[str, Vm]) -> None:
    loaded, partial = scheduler
    assert (SYSFS / "root/ops").read_text().split()[0].startswith("dasec")
    for name in ("one", "other"):
        vms[name] = Vm(name)
        vms[name].run(HOG, {0})
        if partial:
            schedattr.change_policy(vms[name].programs[0].pid, schedattr.SCHED_EXT, 0)
    time.sleep(0.5)
    used = used_meanwhile(vms)
    assert used["one"] / sum(used.values()) == pytest.approx(0.5, abs=0.15)
    seen = {one.cgroup: one.used_ns for one in loaded.vms()}
    assert all(seen[vm.path.stat().st_ino] > 0 for vm in vms.values())
    assert loaded.ended() is None
