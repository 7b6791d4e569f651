"""A mask that a cpuset or an offline CPU cuts: what is asked for cannot be read, and must be put back all the
same."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from dasec.knobs import knob
from dasec.knobs.knob import KnobRef, NativeValue
from dasec.knobs.masks import AFFINITY
from dasec.safety.journal.codec import Bequest
from dasec.safety.journal.ledger import Outstanding
from dasec.safety.restore import put_back
from tests.unit.linux.tree import Tree

from .knobs_for_tests import mask_of, thread
from .small_kernel import ALL_CPUS, SmallKernel

MASK = mask_of(100)


@pytest.fixture
def kernel() -> SmallKernel:
    small = SmallKernel()
    small.start(thread(100))
    return small


def narrowed(kernel: SmallKernel, *cpus: int) -> None:
    for one in kernel.threads.values():
        one.cpuset = cpus


@pytest.mark.parametrize("prior", [(), (0, 1), (3,)])
@pytest.mark.parametrize("ours", [(1,), (0, 1, 2), (2, 3)])
@pytest.mark.parametrize("cpuset", [(0, 3), (1, 3), (3,), ALL_CPUS])
def test_whatever_a_cpuset_leaves_of_ours_the_prior_is_asked_for_again(
    kernel: SmallKernel, prior: tuple[int, ...], ours: tuple[int, ...], cpuset: tuple[int, ...]
) -> None:
    kernel.set(MASK, ours)
    narrowed(kernel, *cpuset)
    done = put_back([Outstanding(MASK, prior, (ours,))], (), (), kernel)
    narrowed(kernel, *ALL_CPUS)
    if done.failed:
        assert set(prior).isdisjoint(cpuset), "nothing else may fail"
        assert kernel.read(MASK) == ours, "and then it is left for a later restore"
        done = put_back([Outstanding(MASK, prior, (ours,))], (), (), kernel)
    assert (done.failed, done.left_alone) == ((), ())
    assert kernel.read(MASK) == (prior or ALL_CPUS)


def test_a_cpuset_that_takes_a_while_to_reach_its_threads_is_waited_for(
    kernel: SmallKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says (0, 1) already, and the thread's mask is still what another one left of it."""
    kernel.set(MASK, (1, 2))
    narrowed(kernel, 0, 1)
    reaches_at = time.monotonic() + 0.005
    read = kernel.read

    def lagging(ref: KnobRef) -> NativeValue:
        return read(ref) if time.monotonic() > reaches_at else (2, 3)

    monkeypatch.setattr(kernel, "read", lagging)
    done = put_back([Outstanding(MASK, (), ((2, 3), (1, 2)))], (), (), kernel)
    assert (done.failed, done.left_alone) == ((), ())


def test_a_mask_that_is_no_part_of_ours_is_somebody_elses_in_a_narrow_cpuset_too(kernel: SmallKernel) -> None:
    kernel.set(MASK, (2, 3))
    narrowed(kernel, 0, 2, 3)
    done = put_back([Outstanding(MASK, (), ((0, 1),))], (), (), kernel)
    assert len(done.left_alone) == 1
    assert kernel.read(MASK) == (2, 3)


def test_a_prior_mask_keeps_the_cpu_that_is_offline_while_it_is_read(tmp_path: Path) -> None:
    """Of CPUs 0 and 5000 this machine has one online."""
    tree = Tree(tmp_path)
    tree.v2()
    tree.thread(10, 10, groups="0::/a\n")
    tree.write("proc/10/task/10/status", "Name:\tx\nCpus_allowed:\tx\nCpus_allowed_list:\t0,5000\n")
    tree.write("sys/fs/cgroup/cpuset.cpus.effective", "0-1\n")
    ref = KnobRef(thread(10, pid=10), AFFINITY)
    assert knob.prior_of(ref, (0,), tree.proc) == (0, 5000)


def test_a_thread_born_with_our_mask_in_a_narrow_cpuset_does_not_have_it_in_a_wide_one(
    kernel: SmallKernel,
) -> None:
    kernel.set(MASK, (1,))
    narrowed(kernel, 0, 2)
    young = kernel.clone(thread(100), thread(3, start_ticks=1000))
    bequest = Bequest(100, AFFINITY, (1,), (), since_ticks=500)
    put_back([Outstanding(MASK, (), ((1,),))], (), [bequest], kernel)
    narrowed(kernel, *ALL_CPUS)
    assert kernel.threads[young].mask == ALL_CPUS
