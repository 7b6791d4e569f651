"""Starts and stops by the hundred on each engine beside a restless daemon: no leak, no wrong thread.

`make churn` runs it; DASEC_CHURN_ROUNDS says how many on each engine.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from dasec.linux import schedattr
from dasec.linux.errors import ThreadGone
from guests.engines.engine import Engine
from guests.engines.lxc import Lxc
from guests.waiting import gone, wait_for

from .managing import Daemon, changed, inhabitants, of_two, outsiders, restless

pytestmark = [pytest.mark.host, pytest.mark.engines, pytest.mark.slow]

ROUNDS = int(os.environ.get("DASEC_CHURN_ROUNDS", "250"))
SETTLED = 20
"""Rounds after which a daemon has all that it will ever need; of fewer, its memory says nothing."""

MORE_RSS_KIB = 4096
"""What it may have grown by since; the record's and the log's buffers are of that size."""


class Footprint(NamedTuple):
    """What a process holds."""

    descriptors: int
    rss_kib: int
    threads: int

    @classmethod
    def of(cls, pid: int) -> Footprint:
        """Now."""
        status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        descriptors = len(os.listdir(f"/proc/{pid}/fd"))
        return cls(descriptors, int(status["VmRSS"].split()[0]), int(status["Threads"]))


def test_starts_and_stops_leave_nothing_and_reach_no_wrong_thread(engine: Engine, tmp_path: Path) -> None:
    engine.start("bystander")
    with of_two(engine, "kept") as group:
        before, others = inhabitants(group), outsiders(engine.place, group)
        told = restless(engine.called("kept"), engine.called("web"))
        with Daemon(engine.place, tmp_path, told) as daemon:
            prints = []
            for number in range(ROUNDS):
                _live_and_die(engine, number)
                if number == min(SETTLED, ROUNDS // 4) or (number + 1) % (ROUNDS // 4) == 0:
                    wait_for(lambda: daemon.names() == {engine.called("kept")})
                    prints.append(Footprint.of(daemon.pid))
            wrong = changed(others, outsiders(engine.place, group))
            daemon.end(signal.SIGTERM)
            looks = len(list(daemon.looks()))
            journal = sum(each.stat().st_size for each in daemon.state.iterdir())
            print(
                f"\n{engine.called('web')}: {ROUNDS} starts, {looks} looks, journal {journal} bytes",
                *prints,
                sep="\n",
                file=sys.__stderr__,
            )
        assert wrong == []
        assert inhabitants(group) == before
        first, *_, last = prints
        assert (last.descriptors, last.threads) == (first.descriptors, first.threads)
        assert ROUNDS // 4 < SETTLED or last.rss_kib < first.rss_kib + MORE_RSS_KIB
    engine.remove("bystander")


def _live_and_die(engine: Engine, number: int) -> None:
    """It is managed before it ends: killed, removed, or restarted first."""
    engine.start("web")
    pid = engine.pid("web")
    wait_for(lambda: _is_written(pid))
    if number % 5 == 1 and not isinstance(engine, Lxc):
        engine.execute("web")
    if number % 5 == 2:
        engine.restart("web")
    if number % 5 == 3:
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: gone(pid))
    engine.remove("web")


def _is_written(pid: int) -> bool:
    try:
        return schedattr.get(pid).slice_ns != schedattr.default_slice_ns()
    except (ThreadGone, OSError):
        return False
