"""What the log and the status say of a policy's state: each thing once, and when it ends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dasec.critical import CriticalState
from dasec.guard import GuardStanding, GuardState, Verdict
from dasec.log import Announcer
from dasec.model import Decision, PolicyState
from dasec.record.entries import Entry
from dasec.service.policy_alerts import BLIND_PERIODS, Remarks, verdict_of

from .periods import STATE, busy_history

HARMED = GuardStanding("hungry", Verdict.HARM, ratio=2310, pairs=3, since=100, until=850, failures=1)


def told(remarks: Remarks, *states: PolicyState, counted: bool = False) -> None:
    (entry,) = busy_history(1)
    for state in states:
        remarks.write(_counted(entry, counted)._replace(decision=Decision(state=state)), STATE)


def _counted(entry: Entry, counted: bool) -> Entry:
    usage = {vcpu: used._replace(wakeups=3) if counted else used for vcpu, used in entry.period.usage.items()}
    return entry._replace(period=replace(entry.period, usage=usage))


def guarded(*standings: GuardStanding) -> PolicyState:
    return GuardState(STATE, standings)


def test_a_verdict_of_harm_is_one_line_with_the_reason_and_the_time() -> None:
    assert verdict_of(HARMED, "dasec", 80) == (
        "threads that others wait for took 2.31 times as long with policy dasec as without it"
        " (3 pairs of windows): policy off here for 60 s"
    )


def test_it_is_said_once_and_its_end_too(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "dasec")
    announcer = Announcer()
    remarks = Remarks("dasec", 80, announcer)
    told(remarks, guarded(), *[guarded(HARMED)] * 5)
    assert [line for line in caplog.messages if "guard" in line] == [
        "workload hungry: guard: " + verdict_of(HARMED, "dasec", 80)
    ]
    assert len(announcer.troubles) == 1
    told(remarks, guarded(HARMED._replace(verdict=Verdict.UNTRIED)))
    assert caplog.messages[-1] == "workload hungry: guard: policy dasec is tried again"
    assert not announcer.troubles


def test_the_verdict_on_a_workload_that_is_gone_is_no_trouble_any_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "dasec")
    announcer = Announcer()
    remarks = Remarks("dasec", 80, announcer)
    told(remarks, guarded(HARMED), guarded())
    assert caplog.messages[-1] == "workload hungry: guard: gone"
    assert not announcer.troubles


def test_a_pass_is_no_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "dasec")
    told(Remarks("critical", 80, Announcer()), guarded(HARMED._replace(verdict=Verdict.FINE)))
    assert caplog.messages == []


@pytest.mark.parametrize("with_guard", [True, False])
def test_a_workload_whose_wake_ups_nobody_counts_is_announced_once_and_stays_in_the_status(
    with_guard: bool, caplog: pytest.LogCaptureFixture
) -> None:
    state: PolicyState = CriticalState(blind=("hungry",))
    announcer = Announcer()
    remarks = Remarks("critical", 80, announcer)
    told(remarks, *[GuardState(state) if with_guard else state] * (BLIND_PERIODS - 1))
    assert caplog.messages == []
    told(remarks, *[GuardState(state) if with_guard else state] * 200, CriticalState())
    assert len(caplog.messages) == 1
    assert "workload hungry: nobody counts its wake-ups, so policy critical leaves it" in caplog.messages[0]
    assert list(announcer.troubles) == caplog.messages


def test_it_ends_when_they_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "dasec")
    announcer = Announcer()
    remarks = Remarks("critical", 80, announcer)
    told(remarks, *[CriticalState(blind=("hungry",))] * BLIND_PERIODS)
    told(remarks, CriticalState(), counted=True)
    assert caplog.messages[-1] == "workload hungry: its wake-ups are counted now"
    assert not announcer.troubles
