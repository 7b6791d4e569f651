"""Wake-ups that are followed or are not: what an operator hears of a kernel that does not let us."""

from __future__ import annotations

import pytest

from dasec.bpf.edges import NOTHING, NoEdges, Reading
from dasec.bpf.libbpf import BpfUnavailable
from dasec.hosts.threads.notices import Notices
from dasec.hosts.threads.wakers import Wakers
from dasec.model import Level


class Reluctant:
    """Edges of a kernel that takes programs again only while it is `willing`."""

    level, note = Level.FULL, "reluctant"

    def __init__(self, refusal: Exception) -> None:
        self.watching, self.willing, self._refusal = True, False, refusal

    def follow(self, workload_of: object) -> dict[int, int]:
        return {}

    def watch(self, wanted: bool) -> None:
        if wanted and not self.watching and not self.willing:
            raise self._refusal
        self.watching = wanted

    def read(self) -> Reading:
        return NOTHING

    def close(self) -> None:
        """Nothing is held."""


@pytest.mark.parametrize("refusal", [BpfUnavailable("no room"), OSError(12, "no room")])
def test_a_kernel_that_refuses_is_said_once_and_so_is_that_it_does_no_more(refusal: Exception) -> None:
    edges, notices = Reluctant(refusal), Notices(lambda: 0)
    wakers = Wakers(edges, notices)
    seen = []
    for wanted in (False, True):
        wakers.watch(wanted)
        seen.append(wakers.unwatched)
    (line,) = notices.take()
    assert line.startswith("wake-ups cannot be followed now: ")
    assert line.endswith("no room")
    wakers.watch(True)
    edges.willing = True
    wakers.watch(True)
    assert [*seen, wakers.unwatched] == [True, True, False]
    assert notices.take() == ("wake-ups are followed again",)
    wakers.watch(True)
    assert notices.take() == ()


def test_where_nobody_can_follow_wake_ups_there_is_nothing_to_leave_out() -> None:
    wakers = Wakers(NoEdges("not asked for"), Notices())
    wakers.watch(False)
    assert not wakers.unwatched
