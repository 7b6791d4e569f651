"""Guests beside each other, with something else in place of QEMU."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from dasec.lab.kit.errors import STOPPING, Interrupted, interruptible
from experiments.places.counted.batch import measure_all
from experiments.places.counted.cpus import Cpus
from experiments.places.counted.machine import Machine, Task
from guests.boot import EXIT_MARK
from guests.qemu import Qemu

NOWHERE = Path("/nowhere")


@dataclass(frozen=True, slots=True)
class Shell(Machine):
    """A guest is a line of shell, its task's word."""

    def command(self, task: Task) -> list[str]:
        return ["sh", "-c", task.word]


MACHINE = Shell(Qemu(NOWHERE), NOWHERE, NOWHERE, NOWHERE, Cpus(2))


def sleeping(number: int, folder: Path) -> Task:
    """A guest that would work for a while."""
    word = f"touch {folder}/{number}; sleep 15 >{folder}/{number} 2>&1; touch {folder}/end"
    return Task(str(number), word, 1)


@pytest.mark.parametrize("number", STOPPING)
def test_guests_end_at_once_with_whoever_waits_for_them(number: signal.Signals, tmp_path: Path) -> None:
    tasks = [sleeping(each, tmp_path) for each in range(3)]

    def stop() -> None:
        while len(list(tmp_path.iterdir())) < 2:
            time.sleep(0.01)
        os.kill(os.getpid(), number)

    stopping = threading.Thread(target=stop)
    stopping.start()
    with pytest.raises(Interrupted), interruptible():
        measure_all(MACHINE, tasks, 2, lambda task, told: None)
    stopping.join()
    assert {one.name for one in tmp_path.iterdir()} == {"0", "1"}  # none has ended, the third never began


def test_what_a_guest_says_before_it_ends_well_is_kept_and_what_fails_is_told() -> None:
    kept: list[str] = []
    good = Task("good", f"echo 'RUN:{{}}'; echo {EXIT_MARK}0", 1)
    bad = Task("bad", "echo no room", 1)
    failures = measure_all(MACHINE, [good, bad], 1, lambda task, told: kept.append(task.name))
    assert (kept, failures) == (["good"], ["bad: no room"])
