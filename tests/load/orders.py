"""An order, carried out by a driver from start to stop."""

from __future__ import annotations

import time

from dasec.lab.kit.driver import Driver, WorkDone, WorkOrder
from experiments.places.places import Anywhere


def carried_out(driver: Driver, asked: WorkOrder, *, after_ns: int = 50_000_000) -> WorkDone:
    """What it did, begun that long after it was up."""
    running = driver.start(asked, Anywhere())
    try:
        running.await_up()
        running.begin(time.monotonic_ns() + after_ns)
        return running.finish()
    finally:
        running.stop()
