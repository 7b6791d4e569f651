"""What an operator sees when the host loses knobs while the daemon runs."""

from __future__ import annotations

from dataclasses import replace

from dasec.hosts.fake.fake import EXACT
from dasec.hosts.sched_ext.probe import put_out
from dasec.log import Announcer
from dasec.model import Capabilities
from dasec.service.lost_knobs import LostKnobs

from .periods import busy_history


class Host:
    """What it can do now."""

    def __init__(self, can: Capabilities) -> None:
        self.can = can

    def capabilities(self) -> Capabilities:
        return self.can


def troubles(host: Host, *later: Capabilities) -> list[tuple[str, ...]]:
    """At the beginning, and after each change."""
    announcer = Announcer()
    witness, found = LostKnobs(host.capabilities, announcer), []
    (entry,) = busy_history(1)
    for can in (host.can, *later):
        host.can = can
        witness.write(entry, entry.decision.state)
        found.append(announcer.troubles)
    return found


def test_a_scheduler_that_is_put_out_is_a_trouble_from_then_on() -> None:
    before, after, later = troubles(Host(EXACT), gone := put_out(EXACT, ""), gone)
    assert before == ()
    assert (
        after
        == later
        == (
            "weight and rescheduling latency: not to be had any more until dasec is started again:"
            " our sched_ext scheduler was put out",
        )
    )


def test_what_the_host_never_had_is_no_trouble() -> None:
    lacking = replace(EXACT, weight=False, weight_note="no cgroups")
    assert troubles(Host(lacking)) == [()]
    _, (line,) = troubles(Host(lacking), put_out(lacking, ""))
    assert line.startswith("rescheduling latency: not to be had")


def test_knobs_that_are_back_are_no_trouble_any_more() -> None:
    assert troubles(Host(EXACT), put_out(EXACT, ""), replace(EXACT))[-1] == ()
