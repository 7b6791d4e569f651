"""hackbench (Debian: rt-tests): pairs of threads that send each other messages, run after run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial

from dasec.lab.kit.driver import Place, WorkDone, WorkOrder

from .options import absent, options_of, refusal, whole
from .program import Benchmark, Program

OPTIONS = {"loops": "1000"}
"""Messages of each sender to each receiver in one run of hackbench."""

AGAIN = 'while read -r up rest </proc/uptime && echo "at $up" && "$@"; do :; done'
"""hackbench has a number of messages, not a time, so it runs again and again until it is ended."""

ENDED = 124
"""timeout(1) had to end it."""

RUN = re.compile(r"^at ([\d.]+)\n(?:(?!at ).*\n)*?Time: ([\d.]+)$", re.MULTILINE)


def parse(text: str, warmup_s: float, messages: int) -> WorkDone:
    """The part of each finished run that lies behind the warm-up counts."""
    runs = [(float(at), float(at) + float(took)) for at, took in RUN.findall(text)]
    if not runs:
        raise ValueError("no run has ended: ask for fewer loops")
    begin_s, end_s = runs[0][0] + warmup_s, runs[-1][1]
    if end_s <= begin_s:
        raise ValueError("no run has ended after the warm-up: ask for fewer loops")
    parts = [max(0.0, end - max(at, begin_s)) / (end - at) for at, end in runs if end > at]
    return WorkDone(work=sum(parts) * messages, unit="messages", seconds=end_s - begin_s)


@dataclass(frozen=True, slots=True)
class Hackbench(Benchmark):
    """`threads` are senders and receivers, as many of each, in one process at a time."""

    name: str = "hackbench"

    def missing(self) -> str | None:
        return absent("hackbench", "rt-tests")

    def start(self, order: WorkOrder, place: Place) -> Program:
        loops = whole(order, "loops", options_of(order, OPTIONS)["loops"])
        if order.threads < 2 or order.threads % 2:
            raise refusal(order, "threads", f"must be even and at least 2, got '{order.threads}'")
        pairs = order.threads // 2
        read = partial(parse, warmup_s=order.warmup_s, messages=pairs * pairs * loops)
        return Program.start(order, place, command(order, pairs, loops), read, (ENDED,))


def command(order: WorkOrder, pairs: int, loops: int) -> tuple[str, ...]:
    """One group of so many pairs, threads of one process."""
    once = ("hackbench", "--threads", "--groups", "1", "--fds", str(pairs), "--loops", str(loops))
    return ("timeout", f"{order.total_s:g}", "/bin/sh", "-c", AGAIN, "again", *once)
