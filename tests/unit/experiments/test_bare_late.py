"""A client of guests of our own that cannot keep up."""

from __future__ import annotations

import contextlib
import socket
from collections import Counter

import pytest

from experiments.results.store import Store
from experiments.studies.bare import load
from experiments.studies.bare.load import Orders, drive
from experiments.studies.bare.published import FOLDERS
from experiments.studies.bare.wish import Wish

ORDERS = Orders((1,), (1,), rate_per_s=2e6, serial_us=1, helper_us=1, warmup_s=0.0, seconds=0.001)
"""Some 2000 requests within a millisecond: each but the first is late."""


class Guest(socket.socket):
    """Answers at once; what has no room in the client's socket is lost."""

    def __init__(self) -> None:
        ours, self.far = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        super().__init__(fileno=ours.detach())
        self.far.setblocking(False)
        self.sent = 0

    def send(self, data: bytes, *_: int) -> int:  # type: ignore[override]
        self.sent += 1
        with contextlib.suppress(BlockingIOError):
            self.far.send(data)
        return len(data)


def test_a_client_that_is_always_late_still_takes_each_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    guest = Guest()
    monkeypatch.setattr(load, "_connected", lambda _: guest)
    with guest.far:
        (answers,) = drive(ORDERS, drain_s=0.2)
    assert guest.sent > 1500
    assert (answers.unfinished, len(answers.latencies_ns)) == (0, guest.sent)


def test_as_many_requests_have_no_answer_as_the_page_says() -> None:
    unanswered, asked = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for run, cell in (
        (run, one.cell) for at in FOLDERS for one in Store(at, Wish).done() for run in one.runs
    ):
        asked[cell, run.arm] += sum(each.latencies.count for each in run.tenants)
        unanswered[cell, run.arm] += sum(each.unfinished for each in run.tenants)
    ((without, number),) = (+unanswered).items()
    assert without == ("3 guests, kvm", "dasec")
    page = (FOLDERS[0].parent / "README.md").read_text(encoding="utf-8")
    assert f"In the kept runs {number} of {asked[without]} have none under `dasec`" in page
