"""A client of guests of our own that cannot keep up."""

from __future__ import annotations

import contextlib
import socket

import pytest

from experiments.studies.bare import load
from experiments.studies.bare.load import Orders, drive

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
