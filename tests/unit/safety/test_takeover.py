"""execve by a thread that is not the main one: its knobs stand behind the main thread's number."""

from __future__ import annotations

import pytest

from dasec.safety.journal.ledger import Outstanding
from dasec.safety.restore import put_back

from .knobs_for_tests import group_of, mask_of, slice_of, thread
from .small_kernel import DEFAULT_SLICE_NS, SmallKernel

MAIN = 100


@pytest.fixture
def kernel() -> SmallKernel:
    """The main thread's number, and nobody else of its process."""
    small = SmallKernel()
    small.make_group("/vm")
    small.make_group("/vm/dasec-1")
    small.start(thread(MAIN), "/vm")
    return small


def test_what_was_ours_in_a_vanished_sibling_goes_back_to_what_that_had(kernel: SmallKernel) -> None:
    held = (
        Outstanding(slice_of(MAIN), 0, (5,)),
        Outstanding(mask_of(MAIN), (2,), ((0,),)),
        Outstanding(group_of(MAIN), "/", ("/vm/dasec-100",)),
        Outstanding(slice_of(1), 7, (4,)),
        Outstanding(mask_of(1), (3,), ((1,),)),
        Outstanding(group_of(1), "/vm", ("/vm/dasec-1",)),
    )
    for one in held[3:]:
        kernel.set(one.ref._replace(owner=thread(MAIN)), one.ours[0])
    done = put_back(held, ("/cg/vm/dasec-1",), (), kernel)
    assert (done.put_back, done.left_alone, done.vanished) == (3, (), 3)
    got = [kernel.read(kind(MAIN)) for kind in (slice_of, mask_of, group_of)]
    assert got == [7, (3,), "/vm"]


def test_what_was_ours_in_both_goes_back_to_what_the_main_thread_had(kernel: SmallKernel) -> None:
    """Nothing tells whose it is."""
    kernel.set(slice_of(MAIN), 4)
    put_back([Outstanding(slice_of(MAIN), 0, (4,)), Outstanding(slice_of(1), 7, (4,))], (), (), kernel)
    assert kernel.read(slice_of(MAIN)) == DEFAULT_SLICE_NS


def test_while_the_sibling_lives_a_value_like_ours_in_it_is_somebody_elses(kernel: SmallKernel) -> None:
    kernel.start(thread(1))
    kernel.set(slice_of(MAIN), 4)
    done = put_back([Outstanding(slice_of(MAIN), 0, (5,)), Outstanding(slice_of(1), 7, (4,))], (), (), kernel)
    assert (len(done.left_alone), kernel.read(slice_of(MAIN))) == (2, 4)
