"""The mainline host with a wake-edge monitor: who woke a vCPU reaches the period."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dasec.bpf.extent import Extent
from dasec.bpf.wake_edges import BpfEdges
from dasec.hosts.mainline import Mainline
from dasec.model import Capabilities, Level
from dasec.period import between
from dasec.roster import RosterEntry
from dasec.safety.journal.journal import Journal

from .planted import TARGET, Actor, planter

pytestmark = pytest.mark.host

TIMES, STRANGE = 12, 5
NOTHING = Capabilities("mainline", False, "", False, "", False, "", False, "")


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Mainline]:
    journal, _ = Journal.open(tmp_path)
    made = Mainline(journal, NOTHING, edges=BpfEdges(Extent(Level.FULL, slots=16, edges=16)))
    yield made
    made.close()


def test_the_wakers_of_a_period_are_those_that_woke_in_it(host: Mainline) -> None:
    assert host.capabilities.wake_edges
    target, stranger = Actor(TARGET), Actor(TARGET)
    waker = planter((target, TIMES), (stranger, STRANGE))
    try:
        roster = (RosterEntry("pair", None, tuple((actor.pid, actor.pid) for actor in (target, waker))),)
        before = host.observe(roster)
        waker.start()
        waker.wait()
        target.wait_until_asleep()
        after = host.observe(roster)
        period = between(0, before, after)
        assert period.usage[target.id].wakers == ((waker.id, TIMES),)
        assert period.usage[waker.id].wakers == ()
        assert period.usage[target.id].wakeups == TIMES
        assert period.usage[target.id].external_wakeups == 0
        outward = period.usage[waker.id].outward
        assert outward is not None
        assert STRANGE <= outward < TIMES + STRANGE
        chained_ns = period.usage[target.id].chain_ns
        assert chained_ns is not None
        assert chained_ns > 0
        later = host.observe(roster)
        assert later.counters[target.id] is after.counters[target.id], "a sleeper is a new object"
    finally:
        for actor in (target, stranger, waker):
            actor.end()
