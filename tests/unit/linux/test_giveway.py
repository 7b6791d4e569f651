"""Letting others go first, on threads of this process: what compares the host with what it was must not run
beside it, hence `host`."""

from __future__ import annotations

import os
import threading

import pytest

from dasec.linux import schedattr
from dasec.linux.schedattr import SCHED_BATCH, SCHED_IDLE, SCHED_OTHER
from dasec.service.give_way import SLICE_NS, giving_way

pytestmark = pytest.mark.host


def own() -> schedattr.SchedAttr:
    return schedattr.get(threading.get_native_id())


def test_within_the_block_others_go_first_and_after_it_all_is_as_it_was() -> None:
    before = own()
    assert before.policy == SCHED_OTHER
    with giving_way():
        assert (own().policy, own().nice) == (SCHED_BATCH, before.nice)
        assert own().slice_ns in (SLICE_NS, 0)
    assert own() == before


def test_an_error_ends_it_too() -> None:
    before = own()
    try:
        with giving_way():
            raise ValueError
    except ValueError:
        assert own() == before


def test_who_was_given_another_policy_keeps_it() -> None:
    seen = []

    def idle() -> None:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        with giving_way():
            seen.append(own().policy)
        seen.append(own().policy)

    thread = threading.Thread(target=idle)
    thread.start()
    thread.join()
    assert seen == [SCHED_IDLE, SCHED_IDLE]
