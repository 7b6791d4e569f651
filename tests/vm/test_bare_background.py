"""What the freestanding guest does unasked: bursts, rests, a lock that is held."""

from __future__ import annotations

from contextlib import closing

import pytest

from guests.bare.client import Client
from guests.bare.machine import best_accelerator, running
from guests.waiting import wait_for

VCPUS = 4
QUANTUM_US, QUANTA = 4, 25
"""Background's unless told otherwise, and how many a burst has here."""

pytestmark = pytest.mark.vm


def test_a_rest_longer_than_the_timer_counts_is_several_of_it() -> None:
    options = f"background=1 burst_us={QUANTUM_US * QUANTA} gap_us=4500000"
    with running(best_accelerator(), 1, options) as guest, closing(Client(guest.address)) as client:
        wait_for(lambda: client.statistics(0).quanta > QUANTA)
        its = client.statistics(0)
    rests = (its.quanta - 1) // QUANTA
    assert its.timers >= 2 * rests


def test_without_a_rest_a_holder_takes_the_lock_again_and_bursts_without_a_quantum_end() -> None:
    options = "helpers=1 background=8 burst_us=100 gap_us=100 quantum_us=0 holder=2 hold_us=10 hold_gap_us=0"
    with running(best_accelerator(), VCPUS, options) as guest, closing(Client(guest.address)) as client:
        wait_for(lambda: client.statistics(2).holds > 2)
        wait_for(lambda: client.statistics(3).timers > 2)
