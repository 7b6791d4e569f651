"""A guest ends with whoever waits for its end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from dasec.lab.kit.process import descendants
from guests.boot import run_until_end
from guests.waiting import gone, wait_for

WAITER = """
from guests.boot import run_until_end
run_until_end(["sleep", "3600"], 7200)
"""


def names(pids: list[int]) -> list[str]:
    return [Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip() for pid in pids]


def test_a_guest_does_not_outlive_who_waits_for_its_end_and_was_killed(repository: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", WAITER], cwd=repository) as waiter:

        def below() -> list[int]:
            return [pid for pid in descendants(waiter.pid) if pid != waiter.pid]

        wait_for(lambda: names(below()) == ["sleep"])
        (guest,) = below()
        waiter.kill()
    wait_for(lambda: gone(guest))


def test_a_guest_that_ends_is_what_it_said_and_one_that_does_not_is_ended() -> None:
    said = run_until_end(["sh", "-c", "echo up; echo GUEST-EXIT:7"], 60)
    assert (said.exit_status, said.console) == (7, "up\nGUEST-EXIT:7\n")
    endless = run_until_end(["sh", "-c", "echo up; exec sleep 3600"], 1)
    assert endless.exit_status is None
    assert "(no end after 1 s)" in endless.console
