"""A reservation that is not kept is said once, and so is its end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dasec.log import LOGGER, Announcer
from dasec.model import PolicyState
from dasec.record.entries import Entry
from dasec.reservations.keep import ReservationState, Unkept
from dasec.service.reservation_alerts import ReservationAlerts

from .periods import STATE, busy_history


def told(*unkept: Unkept) -> Entry:
    (entry,) = busy_history(1)
    state = ReservationState(PolicyState(), unkept=unkept)
    return entry._replace(decision=replace(entry.decision, state=state))


def test_each_is_said_once_and_its_end_too(caplog: pytest.LogCaptureFixture) -> None:
    announcer = Announcer()
    alerts = ReservationAlerts(announcer)
    LOGGER.propagate = True
    refused = told(Unkept("hungry", "wants too much"), Unkept("hungry", "more"), Unkept("gone", "too late"))
    for entry in (refused, refused, told(), told()):
        alerts.write(entry, STATE)
    assert [record.getMessage() for record in caplog.records] == [
        "workload hungry: reservation of CPUs is not kept: wants too much",
        "workload gone: reservation of CPUs is not kept: too late",
        *sorted(
            [
                "workload gone: reservation of CPUs is over: it has no threads",
                "workload hungry: reservation of CPUs is kept now",
            ]
        ),
    ]
    assert list(announcer.troubles) == []
