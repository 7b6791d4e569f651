"""Three situations of one host: one in which there is something to gain, one in which there is little, one in
which there is nothing. Pure.

Sized by cores, so that any machine is loaded alike: for every two cores five workloads of three vCPUs, as
many as five small VMs. In the first two each has a server thread, which works 1.1 ms for a request that comes
from outside, and two threads whose bursts of 10 ms nobody waits for, three fifths of its work (the load
`external` of experiments/plan/loads.py). In the third each has a main thread and two helpers, and requests
wait for all of them. The parts and the lengths are those of docs/measurements.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..kit.scenario import FAN_OUT_HELPER_US, FAN_OUT_SERIAL_US, Scenario, fan_out, service

WORKLOADS_PER_CORE = 2.5
REQUEST_US, BURST_US = 1_100, 10_000
BACKGROUND_PART = 0.59
BACKGROUND_THREADS = 2
BUSY, HALF_BUSY = 0.82, 0.45
"""Of all cores, as asked. What the kernel and the daemon need comes on top: with 0.88 asked, 0.91 to 0.95
was busy, where a queue of seconds' ago decides what is measured now. Of six such runs two could not tell a
mean of .65 from 1 (2026-11-24)."""

FAN_OUT_US = FAN_OUT_SERIAL_US + 2 * FAN_OUT_HELPER_US


@dataclass(frozen=True, slots=True)
class Situation:
    """One line of the demo: its name, what runs and what can be expected of it, in words, all of it, and how
    often each arm runs by default: a multiple of three, so that each is equally often the first. The first
    situation is the one that the sentence at the end is about, and twelve bear one that stalls, however long
    (ratios.py). In the third repetitions differ most."""

    name: str
    gist: str
    scenario: Scenario
    repetitions: int


def situations_for(cores: int) -> tuple[Situation, ...]:
    """The lines for a machine with this many cores."""
    return (
        Situation(
            "busy, with background",
            "servers fed from outside, beside bursts that nobody waits for",
            _served(cores, BUSY),
            repetitions=12,
        ),
        Situation(
            "half busy", "the same, half as much of everything", _served(cores, HALF_BUSY), repetitions=6
        ),
        Situation(
            "all threads serve",
            "requests that wait for every thread: whom to put last?",
            _serving(cores, BUSY),
            repetitions=9,
        ),
    )


def _count(cores: int) -> int:
    return max(2, round(cores * WORKLOADS_PER_CORE))


def _served(cores: int, utilisation: float) -> Scenario:
    work = utilisation * cores / _count(cores)
    options = {
        "variant": "fanout",
        "helpers": "0",
        "serial-us": str(REQUEST_US),
        "background": str(BACKGROUND_THREADS),
        "background-burst-us": str(BURST_US),
        "background-rate": f"{work * BACKGROUND_PART * 1e6 / BURST_US / BACKGROUND_THREADS:g}",
    }
    rate_per_s = round(work * (1 - BACKGROUND_PART) * 1e6 / REQUEST_US, 2)
    services = (
        service(f"server-{number}", 1 + BACKGROUND_THREADS, rate_per_s, options, ("main",), fed=True)
        for number in range(_count(cores))
    )
    return Scenario(cores, tuple(services))


def _serving(cores: int, utilisation: float) -> Scenario:
    rate_per_s = round(utilisation * cores / _count(cores) * 1e6 / FAN_OUT_US, 2)
    services = (fan_out(f"service-{number}", rate_per_s, background=0) for number in range(_count(cores)))
    return Scenario(cores, tuple(services))
