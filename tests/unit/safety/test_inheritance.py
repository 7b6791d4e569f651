"""What the journal says of threads that were born with a value of ours, or of somebody else's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dasec.knobs.knob import KnobRef, Write
from dasec.knobs.masks import AFFINITY
from dasec.knobs.policies import POLICY
from dasec.knobs.slices import SLICE
from dasec.model import VcpuId
from dasec.safety.journal import journal as journal_module
from dasec.safety.journal.journal import Journal, boot_ticks

from .knobs_for_tests import group_of, held, mask_of, open_journal, reopen, slice_of, thread, weight_of


def test_a_thread_that_was_born_with_a_value_of_ours_gets_the_prior_of_its_parent(journal: Journal) -> None:
    journal.begin([Write(slice_of(100), 0, 4), Write(mask_of(100), (0, 1, 2, 3), (1,))])
    young = VcpuId(100, 101, boot_ticks() + 1)
    journal.begin([Write(KnobRef(young, SLICE), 4, 5)])
    journal.begin([Write(KnobRef(young, AFFINITY), (1,), (2,))])
    assert held(journal)[KnobRef(young, SLICE)] == (0, (4, 5))
    assert held(journal)[KnobRef(young, AFFINITY)] == ((0, 1, 2, 3), ((1,), (2,)))


def test_the_main_thread_speaks_for_its_process_where_another_was_pinned_before_us(journal: Journal) -> None:
    journal.begin([Write(mask_of(101), (1,), (0,)), Write(mask_of(100), (0, 1, 2, 3), (0,))])
    journal.begin([Write(mask_of(101), (1,), (1,)), Write(mask_of(100), (0, 1, 2, 3), (1,))])
    young = [VcpuId(100, tid, boot_ticks() + 1) for tid in (102, 103)]
    journal.begin([Write(KnobRef(young[0], AFFINITY), (0,), (2,))])
    journal.begin([Write(KnobRef(young[1], AFFINITY), (1,), (2,))])
    assert [held(journal)[KnobRef(one, AFFINITY)][0] for one in young] == [(0, 1, 2, 3)] * 2


def test_a_thread_that_is_older_than_our_write_has_its_value_from_its_owner(journal: Journal) -> None:
    journal.begin([Write(slice_of(100), 0, 4), Write(mask_of(100), (0, 1, 2, 3), (1,))])
    journal.begin([Write(slice_of(101), 4, 5), Write(mask_of(101), (1,), (2,))])
    assert held(journal)[slice_of(101)] == (4, (5,))
    assert held(journal)[mask_of(101)] == ((1,), ((2,),))


def test_a_mask_in_a_process_of_which_we_hold_vcpu_threads_only_is_its_owners(journal: Journal) -> None:
    journal.begin([Write(mask_of(101), (0, 1, 2, 3), (1,))])
    young = KnobRef(VcpuId(100, 102, boot_ticks() + 1), AFFINITY)
    journal.begin([Write(young, (1,), (2,))])
    assert held(journal)[young] == ((1,), ((2,),))


def test_the_weight_of_the_main_threads_group_is_nothing_that_masks_are_inherited_with(
    journal: Journal,
) -> None:
    """Of QEMU the main thread's weight may be ours, and never its mask, with which all others are born."""
    journal.begin([Write(weight_of(100, "/vm/emulator"), 1024, 512), Write(mask_of(101), (0, 1, 2, 3), (1,))])
    young = KnobRef(VcpuId(100, 102, boot_ticks() + 1), AFFINITY)
    assert journal.inherited(young, (1,)) is None


def test_a_thread_that_was_born_with_a_policy_of_ours_gets_the_one_before_it(journal: Journal) -> None:
    journal.begin([Write(KnobRef(thread(101, 100), POLICY), 3, 7)])
    young, old = (VcpuId(100, tid, boot_ticks() + since) for tid, since in ((102, 1), (103, -1000)))
    assert journal.inherited(KnobRef(young, POLICY), 7) == 3
    assert journal.inherited(KnobRef(old, POLICY), 7) is None
    assert journal.inherited(KnobRef(young, POLICY), 0) is None


def test_a_thread_found_in_a_group_of_ours_belongs_into_the_group_above(journal: Journal) -> None:
    journal.group_made("/cg/vm/dasec-1")
    journal.begin([Write(group_of(1), "/vm", "/vm/dasec-1")])
    assert journal.inherited(group_of(2), "/vm/dasec-1") == "/vm"
    assert journal.inherited(group_of(2), "/vm") is None
    journal.group_gone("/cg/vm/dasec-1")
    assert journal.inherited(group_of(2), "/vm/dasec-1") is None


def test_what_may_be_inherited_survives_a_crash_and_a_rewrite(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "COMPACT_BYTES", 0)
    journal = open_journal(place)
    for new in (4, 5, 6, 7, 8):
        journal.begin([Write(slice_of(100), 0, new)])
    again, _ = reopen(journal, place)
    young = KnobRef(thread(101, start_ticks=boot_ticks() + 1), SLICE)
    assert [again.inherited(young, value) for value in (4, 8, 9)] == [0, 0, None]
    again.settle([slice_of(100)])
    assert again.inherited(young, 4) is None
    again.close()


def test_a_value_that_the_main_thread_had_before_us_is_nobodys_inheritance(journal: Journal) -> None:
    journal.begin([Write(mask_of(100), (0, 1), (2,)), Write(mask_of(101), (1,), (0, 1))])
    young = KnobRef(VcpuId(100, 102, boot_ticks() + 1), AFFINITY)
    assert journal.inherited(young, (0, 1)) is None
    assert journal.inherited(young, (2,)) == (0, 1)


def test_nor_is_a_value_that_the_main_thread_has_while_we_do_not_hold_it(journal: Journal) -> None:
    own = os.getpid()
    natural = tuple(sorted(os.sched_getaffinity(own)))
    journal.begin([Write(slice_of(own, own), 0, 4), Write(mask_of(101, own), (1000,), natural)])
    young = KnobRef(VcpuId(own, 102, boot_ticks() + 1), AFFINITY)
    assert journal.inherited(young, natural) is None


def test_what_is_left_of_a_mask_of_ours_is_inherited_like_all_of_it(journal: Journal) -> None:
    """The other CPU of ours is offline; so it is with one outside the cpuset."""
    own, first = os.getpid(), min(os.sched_getaffinity(os.getpid()))
    journal.begin([Write(mask_of(own, own), (first, 5001), (first, 5000))])
    young = KnobRef(VcpuId(own, own, boot_ticks() + 1), AFFINITY)
    assert journal.inherited(young, (first,)) is None, "the main thread would have it without us"
    journal.settle([mask_of(own, own)])
    journal.begin([Write(mask_of(own, own), (), (first, 5000))])
    young = KnobRef(VcpuId(own, own, boot_ticks() + 1), AFFINITY)  # than that write, too
    if len(os.sched_getaffinity(own)) > 1:
        assert journal.inherited(young, (first,)) == ()
