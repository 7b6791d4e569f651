"""Compare and put back."""

from __future__ import annotations

from pathlib import Path

import pytest

from dasec.knobs.groups import CONTROLLERS
from dasec.knobs.knob import GroupId, KnobRef, NativeKnob, NativeValue, Write
from dasec.knobs.masks import AFFINITY
from dasec.knobs.patched import GRANULARITY, THREAD_WEIGHT
from dasec.knobs.slices import SLICE
from dasec.knobs.words import EXT_LATENCY, EXT_WEIGHT
from dasec.model import Restored
from dasec.safety.journal.codec import Bequest
from dasec.safety.journal.ledger import Outstanding
from dasec.safety.restore import put_all_back, put_back

from .knobs_for_tests import group_of, mask_of, open_journal, slice_of, thread, weight_of
from .small_kernel import ALL_CPUS, DEFAULT_SLICE_NS, SmallKernel

NOTHING = Restored(put_back=0, left_alone=(), vanished=0, failed=())


@pytest.fixture
def kernel() -> SmallKernel:
    small = SmallKernel()
    small.make_group("/vm")
    small.make_group("/vm/vcpu0")
    for tid in (100, 1, 2):
        small.start(thread(tid), "/vm/vcpu0" if tid == 1 else "/vm")
    return small


def test_the_prior_returns_where_the_kernel_holds_the_last_of_ours_or_the_one_before(
    kernel: SmallKernel,
) -> None:
    for present in (4, 5):
        kernel.set(slice_of(1), present)
        assert put_back([Outstanding(slice_of(1), 0, (4, 5))], (), (), kernel).put_back == 1
        assert kernel.read(slice_of(1)) == DEFAULT_SLICE_NS


def test_what_somebody_else_set_since_is_left_alone_and_named(kernel: SmallKernel) -> None:
    kernel.set(weight_of(1), 555)
    done = put_back([Outstanding(weight_of(1), 1024, (1126,))], (), (), kernel)
    assert done.put_back == 0
    assert done.left_alone == (
        "weight_v1 of thread 1 of process 100 (/cg/vm/vcpu0/cpu.shares): somebody else set it to 555 since",
    )
    assert kernel.read(weight_of(1)) == 555


def test_doing_it_twice_changes_nothing_the_second_time(kernel: SmallKernel) -> None:
    before = kernel.snapshot()
    kernel.make_group("/vm/dasec")
    kernel.make_group("/vm/dasec/2")
    outstanding = (
        Outstanding(slice_of(1), 0, (4,)),
        Outstanding(mask_of(1), ALL_CPUS, ((1,),)),
        Outstanding(weight_of(1), 1024, (1126,)),
        Outstanding(group_of(2), "/vm", ("/vm/dasec/2",)),
    )
    for one in outstanding:
        kernel.set(one.ref, one.ours[-1])
    groups = ("/cg/vm/dasec", "/cg/vm/dasec/2")
    assert put_back(outstanding, groups, (), kernel) == Restored(4, (), 0, ())
    assert kernel.snapshot() == before
    assert put_back(outstanding, groups, (), kernel) == NOTHING
    assert kernel.snapshot() == before


def test_slices_go_first_then_masks_weights_groups_and_last_controllers(kernel: SmallKernel) -> None:
    kernel.controllers["/cg/vm/cgroup.subtree_control"] = "cpu"
    kernel.make_group("/vm/dasec")
    controllers = KnobRef(GroupId("/cg/vm", 0), CONTROLLERS, "cgroup.subtree_control")
    outstanding = [
        Outstanding(controllers, "", ("cpu",)),
        Outstanding(group_of(2), "/vm", ("/vm/dasec",)),
        Outstanding(weight_of(1), 1024, (1126,)),
        Outstanding(mask_of(1), ALL_CPUS, ((1,),)),
        Outstanding(slice_of(1), 0, (4,)),
    ]
    for one in outstanding:
        kernel.set(one.ref, one.ours[-1])
    put_back(outstanding, ("/cg/vm/dasec",), (), kernel)
    kinds = [kind.name for kind, _ in kernel.log]
    assert kinds == ["slice", "affinity", "weight_v1", "cgroup", "controllers"]
    assert kernel.controllers == {"/cg/vm/cgroup.subtree_control": ""}


def test_a_thread_that_ended_is_counted_and_no_error(kernel: SmallKernel) -> None:
    kernel.end(thread(1))
    done = put_back(
        [Outstanding(slice_of(1), 0, (4,)), Outstanding(mask_of(1), (0,), ((1,),))], (), (), kernel
    )
    assert done == Restored(0, (), 2, ())


def test_a_thread_that_ends_while_its_mask_is_put_back_is_no_failure(
    kernel: SmallKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once it has ended its cpuset reads as another one."""
    kernel.set(mask_of(1), (1,))

    def end(ref: KnobRef, value: NativeValue) -> NativeValue:
        if value == ():
            kernel.end(ref.vcpu)
            return (0,)
        return value

    monkeypatch.setattr(kernel, "in_force", end)
    assert put_back([Outstanding(mask_of(1), (), ((1,),))], (), (), kernel) == Restored(0, (), 1, ())


def test_a_groups_weight_comes_back_although_the_thread_in_it_has_ended(kernel: SmallKernel) -> None:
    kernel.set(weight_of(1), 1126)
    kernel.end(thread(1))
    assert put_back([Outstanding(weight_of(1), 1024, (1126,))], (), (), kernel).put_back == 1
    assert kernel.read(weight_of(1)) == 1024


def test_what_the_kernel_refuses_is_reported_and_stays_in_the_journal(
    kernel: SmallKernel, tmp_path: Path
) -> None:
    journal = open_journal(tmp_path)
    journal.begin([Write(slice_of(1), 0, 4), Write(slice_of(2), 0, 4)])
    for tid in (1, 2):
        kernel.set(slice_of(tid), 4)
    kernel.refuses.add(slice_of(1))
    done = put_all_back(journal, kernel)
    assert (done.put_back, len(done.failed)) == (1, 1)
    assert "slice of thread 1 of process 100" in done.failed[0]
    assert [one.ref for one in journal.outstanding()] == [slice_of(1)]
    kernel.refuses.clear()
    assert put_all_back(journal, kernel).put_back == 1
    assert journal.outstanding() == ()
    journal.close()


def test_a_thread_born_after_our_write_that_nobody_held_gets_its_parents_prior(kernel: SmallKernel) -> None:
    kernel.set(slice_of(1), 4)
    young, old = thread(3, start_ticks=1000), thread(4, start_ticks=10)
    kernel.clone(thread(1), young)
    kernel.clone(thread(1), old)
    child = kernel.clone(thread(1), thread(201, pid=200, start_ticks=1000))
    bequest = Bequest(100, SLICE, 4, 0, since_ticks=500)
    put_back([Outstanding(slice_of(1), 0, (4,))], (), [bequest], kernel)
    have = {vcpu: kernel.threads[vcpu].slice_ns for vcpu in (young, child, old)}
    assert have == {young: DEFAULT_SLICE_NS, child: DEFAULT_SLICE_NS, old: 4}


def test_a_child_process_of_which_we_hold_another_knob_gets_the_mask_it_was_born_with_back(
    kernel: SmallKernel,
) -> None:
    """It is of two processes that we know: its own, and its parent, which it has the mask from."""
    kernel.set(mask_of(1), (1,))
    child = kernel.clone(thread(1), thread(201, pid=200, start_ticks=1000))
    its_slice = KnobRef(child, SLICE)
    kernel.set(its_slice, 4)
    bequests = [
        Bequest(100, AFFINITY, (1,), ALL_CPUS, since_ticks=500),
        Bequest(200, SLICE, 4, 0, since_ticks=1000),
        Bequest(200, AFFINITY, (0,), ALL_CPUS, since_ticks=1000),
    ]
    outstanding = [Outstanding(mask_of(1), ALL_CPUS, ((1,),)), Outstanding(its_slice, 0, (4,))]
    put_back(outstanding, (), bequests, kernel)
    assert kernel.threads[child].mask == ALL_CPUS
    assert kernel.threads[child].slice_ns == DEFAULT_SLICE_NS


def test_a_process_that_is_just_being_born_while_its_parent_is_put_back_is_not_missed(
    kernel: SmallKernel,
) -> None:
    kernel.set(slice_of(1), 4)
    child = thread(201, pid=200, start_ticks=1000)
    kernel.conceive(thread(1), child)
    bequest = Bequest(100, SLICE, 4, 0, since_ticks=500)
    put_back([Outstanding(slice_of(1), 0, (4,))], (), [bequest], kernel)
    assert kernel.threads[child].slice_ns == DEFAULT_SLICE_NS


def test_what_the_main_thread_has_again_is_not_taken_from_those_born_with_it(kernel: SmallKernel) -> None:
    """Somebody pinned thread 2 to CPU 1 before we gave it the mask that its main thread always had."""
    kernel.set(mask_of(2), ALL_CPUS)
    young = kernel.clone(thread(100), thread(3, start_ticks=1000))
    bequest = Bequest(100, AFFINITY, ALL_CPUS, (1,), since_ticks=500)
    put_back([Outstanding(mask_of(2), (1,), (ALL_CPUS,))], (), [bequest], kernel)
    assert kernel.threads[thread(2)].mask == (1,)
    assert kernel.threads[young].mask == ALL_CPUS


def test_no_thread_is_swept_where_the_process_may_be_another_one_by_now(kernel: SmallKernel) -> None:
    kernel.end(thread(1))
    young = kernel.start(thread(3, start_ticks=1000))
    kernel.threads[young].slice_ns = 4
    bequest = Bequest(100, SLICE, 4, 0, since_ticks=500)
    put_back([Outstanding(slice_of(1), 0, (4,))], (), [bequest], kernel)
    assert kernel.threads[young].slice_ns == 4


def test_a_thread_that_somebody_else_put_into_our_group_stays_there_with_the_group(
    kernel: SmallKernel,
) -> None:
    kernel.make_group("/vm/dasec")
    stranger = kernel.start(thread(900, pid=900), "/vm/dasec")
    done = put_back([Outstanding(slice_of(1), 0, (4,))], ("/cg/vm/dasec",), (), kernel)
    assert done.left_alone[-1] == "/cg/vm/dasec: somebody else put thread 900 there"
    assert kernel.threads[stranger].group == "/vm/dasec"


def test_groups_go_innermost_first_and_those_born_in_them_to_the_first_group_not_ours(
    kernel: SmallKernel,
) -> None:
    for path in ("/vm/dasec", "/vm/dasec/2"):
        kernel.make_group(path)
    kernel.set(group_of(2), "/vm/dasec/2")
    young = kernel.clone(thread(2), thread(3))
    done = put_back(
        [Outstanding(group_of(2), "/vm", ("/vm/dasec/2",))], ("/cg/vm/dasec", "/cg/vm/dasec/2"), (), kernel
    )
    assert done == Restored(1, (), 0, ())
    assert kernel.threads[young].group == "/vm"
    assert not [path for path in kernel.weights if "dasec" in path]


@pytest.mark.parametrize(
    "kind",
    [GRANULARITY, THREAD_WEIGHT, EXT_LATENCY, EXT_WEIGHT],
)
@pytest.mark.parametrize("prior", ["default", 2048])
def test_a_knob_of_the_patch_or_of_our_scheduler_goes_back_to_its_number_or_to_its_default(
    kernel: SmallKernel, kind: NativeKnob, prior: NativeValue, tmp_path: Path
) -> None:
    ref = KnobRef(thread(1), kind)
    kernel.set(ref, prior)
    journal = open_journal(tmp_path)
    journal.begin((Write(ref, prior, 1126),))
    kernel.set(ref, 1126)
    assert journal.bequests() == (), "a child is born with the default"
    journal.close()
    assert put_all_back(open_journal(tmp_path), kernel).put_back == 1
    assert kernel.read(ref) == prior


def test_a_knob_and_a_group_that_a_parser_fails_at_cost_themselves_only(kernel: SmallKernel) -> None:
    for tid in (1, 2, 100):
        kernel.set(slice_of(tid), 4)
    for name in ("/vm/dasec-1", "/vm/dasec-2"):
        kernel.make_group(name)
    kernel.broken = {slice_of(1), "/cg/vm/dasec-1"}
    outstanding = [Outstanding(slice_of(tid), 0, (4,)) for tid in (1, 2, 100)]
    done = put_back(outstanding, ("/cg/vm/dasec-1", "/cg/vm/dasec-2"), (), kernel)
    assert done.put_back == 2
    assert done.failed == (
        "slice of thread 1 of process 100: list index out of range",
        "/cg/vm/dasec-1: list index out of range",
    )
    assert kernel.read(slice_of(2)) == kernel.read(slice_of(100)) == DEFAULT_SLICE_NS
    assert "/cg/vm/dasec-2/cpu.shares" not in kernel.weights


def test_if_nobody_can_be_asked_who_was_born_the_groups_are_removed_all_the_same(kernel: SmallKernel) -> None:
    kernel.set(slice_of(1), 4)
    kernel.make_group("/vm/dasec-1")
    kernel.broken = {"family"}
    born = Bequest(100, SLICE, 4, 0, 0)
    done = put_back([Outstanding(slice_of(1), 0, (4,))], ("/cg/vm/dasec-1",), (born,), kernel)
    assert done.failed == ("threads born with values of ours: list index out of range",)
    assert kernel.read(slice_of(1)) == DEFAULT_SLICE_NS
    assert "/cg/vm/dasec-1/cpu.shares" not in kernel.weights
