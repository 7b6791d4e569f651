"""The loads, by name. Stages, bursts and rates are the prototype's (docs/measurements.md, "Weights that
follow the critical path"; experiments/load/README.md names its scenarios). A load at a ratio and a
utilisation has that many vCPUs a core, as nearly as whole workloads make it, and all rates multiplied by one
factor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dasec.lab.kit.scenario import Scenario, Tenant, Timing

from .shapes import Background, Shape, batch, convoy, fan_out, pipeline, server

USUAL = 4
"""So many workloads if there is a choice, as in the prototype."""

NEAREST = 0.5
"""A load that misses the wanted number of vCPUs by a larger part of it does not exist at that ratio."""


class Impossible(Exception):
    """No such load at this ratio and utilisation; says why."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A point in the space of loads."""

    cores: int
    ratio: float
    utilisation: float
    timing: Timing

    @property
    def vcpus(self) -> float:
        """Of all workloads."""
        return self.cores * self.ratio


@dataclass(frozen=True, slots=True)
class Load:
    """A load: what it is, who is critical in it, and how it is built."""

    name: str
    prototype: str
    about: str
    build: Callable[[Wanted], Scenario]


def alike(*shapes: Shape) -> Callable[[Wanted], Scenario]:
    """All workloads of one shape: of these the one that comes nearest."""

    def build(wanted: Wanted) -> Scenario:
        shape, count = _nearest(shapes, wanted)
        factor = wanted.utilisation * wanted.cores / (count * shape.cores)
        return Scenario(
            wanted.cores, tuple(shape.service(f"service-{number}", factor) for number in range(count))
        )

    return build


def _nearest(shapes: Sequence[Shape], wanted: Wanted) -> tuple[Shape, int]:
    found = []
    for shape in shapes:
        about = int(wanted.vcpus / shape.threads)
        for count in {max(1, about), about + 1}:
            missed = abs(count * shape.threads - wanted.vcpus) / wanted.vcpus
            factor = wanted.utilisation * wanted.cores / (count * shape.cores)
            found.append((missed, abs(count - USUAL), shape, count, factor <= shape.most_factor()))
    near = [one for one in found if one[0] <= NEAREST]
    if not near:
        raise Impossible(f"has at least {min(shape.threads for shape in shapes)} vCPUs")
    able = [one for one in near if one[4]]
    if not able:
        raise Impossible("one thread alone would need more than a core")
    _, _, shape, count, _ = min(able, key=lambda one: one[:2])
    return shape, count


BURSTS = 24.0
"""Bursts of 10 ms a second and workload: 0.24 cores beside 0.17 for requests."""


def _bursts(threads: int, per_s: float = BURSTS) -> Background:
    return Background(threads, 10_000, per_s)


def _logging(threads: int) -> Background:
    return Background(threads, 10_000, BURSTS, "logger", 20)


def _handing_on(threads: int) -> Background:
    return Background(threads, 5_000, BURSTS, "peer", 5_000)


def _short(threads: int) -> Background:
    return Background(threads, 500, 480)


BATCH_PART = 2 / 3
"""Of all work in `latency-vm`, what the batch workloads do."""


def _latency_vm(wanted: Wanted) -> Scenario:
    """One workload that serves, the others compute."""
    serving, computing = fan_out(200, 2, None), batch(_bursts(2))
    count = max(1, round((wanted.vcpus - serving.threads) / computing.threads))
    if abs(serving.threads + count * computing.threads - wanted.vcpus) > NEAREST * wanted.vcpus:
        raise Impossible(f"has at least {serving.threads + computing.threads} vCPUs")
    work = wanted.utilisation * wanted.cores
    serving_factor = work * (1 - BATCH_PART) / serving.cores
    computing_factor = work * BATCH_PART / (count * computing.cores)
    if serving_factor > serving.most_factor() or computing_factor > computing.most_factor():
        raise Impossible("one thread alone would need more than a core")
    batches = (computing.service(f"batch-{number}", computing_factor) for number in range(count))
    return Scenario(wanted.cores, (serving.service("service-0", serving_factor), *batches))


REQUEST_US = 94.0
"""CPU time of a memcached request, the client's included: 0.18 + 0.29 cores at 5000/s
(experiments/studies/demo/README.md)."""

MEMCACHED_PART = 0.45
"""Of all work in `memcached`, what requests are; as in the fan-out loads."""


def _memcached(wanted: Wanted) -> Scenario:
    """Workloads of a memcached with two workers, beside it in the same workload two background threads."""
    threads = 4
    count = max(1, round(wanted.vcpus / threads))
    if abs(count * threads - wanted.vcpus) > NEAREST * wanted.vcpus:
        raise Impossible(f"has at least {threads} vCPUs")
    work = wanted.utilisation * wanted.cores / count
    rate, bursts = work * MEMCACHED_PART * 1e6 / REQUEST_US, work * (1 - MEMCACHED_PART) / 10e-3 / 2
    from ..drivers.memcached import beside_bursts  # no guest that counts has it

    tenants = (beside_bursts(f"memcached-{number}", round(rate), 2, bursts) for number in range(count))
    return Scenario(wanted.cores, tuple(tenants))


STEP = "step"
STEP_BEFORE = 2 / 3
"""Of the rate after the step, the rate before it."""


def _step(wanted: Wanted) -> Scenario:
    """In the middle of the measured part background begins, and half as many requests more."""
    shape, count = _nearest(_WITH_BURSTS, wanted)
    factor = wanted.utilisation * wanted.cores / (count * shape.cores)
    at_s = wanted.timing.warmup_s + wanted.timing.seconds / 2
    after = {
        "rate": f"{shape.rate_per_s * factor * STEP_BEFORE:g}",
        "step-rate": f"{shape.rate_per_s * factor:g}",
        "step-at": f"{at_s:g}",
        "background-from": f"{at_s:g}",
    }
    tenants: tuple[Tenant, ...] = tuple(
        shape.service(f"service-{number}", factor, after) for number in range(count)
    )
    return Scenario(wanted.cores, tenants)


IDLE = 0.02
"""Utilisation of `idle`, whatever is asked."""


def _idle(wanted: Wanted) -> Scenario:
    asleep = Wanted(wanted.cores, wanted.ratio, IDLE, wanted.timing)
    return alike(*_HOMOGENEOUS)(asleep)


_HOMOGENEOUS = tuple(fan_out(200, helpers, None) for helpers in (1, 2, 3))
_UNEQUAL = tuple(fan_out(140, helpers, None, 370, 3) for helpers in (3, 2))
_SIZES = ((2, 2), (2, 1), (1, 2), (1, 1))
"""Helpers and background threads, the prototype's first."""

_WITH_BURSTS = tuple(fan_out(100, helpers, _bursts(threads)) for helpers, threads in _SIZES)

_LOADS = (
    Load("fanout", "E1", "main, then all helpers at once; no background", alike(*_HOMOGENEOUS)),
    Load("imbalanced", "E2", "the same, one helper takes three times as long", alike(*_UNEQUAL)),
    Load("background", "E10", "fan-out beside bursts of 10 ms in the same workload", alike(*_WITH_BURSTS)),
    Load(
        "external",
        "EXT",
        "one server thread fed by another process, beside bursts of 10 ms",
        alike(server(_bursts(2)), server(_bursts(1))),
    ),
    Load(
        "pipeline",
        "PIPE",
        "main and stages one after the other, one three times as slow, beside bursts of 10 ms",
        alike(*(pipeline(stages, _bursts(threads, 22)) for stages, threads in ((4, 2), (2, 1), (1, 1)))),
    ),
    Load(
        "convoy",
        "CONV",
        "workers behind a lock that a holder keeps for 3 ms, beside bursts of 10 ms",
        alike(*(convoy(workers, _bursts(threads, 20)) for workers, threads in ((4, 2), (2, 2), (2, 1)))),
    ),
    Load(
        "chatty-logger",
        "BGP",
        "fan-out beside bursts of 10 ms that wake a logger each ms",
        alike(*(fan_out(100, helpers, _logging(threads)) for helpers, threads in _SIZES)),
    ),
    Load(
        "chatty-peer",
        "BGC",
        "fan-out beside bursts of 5 ms that wake another of 5 ms",
        alike(*(fan_out(100, helpers, _handing_on(threads)) for helpers, threads in _SIZES)),
    ),
    Load(
        "inverse",
        "INV",
        "helpers of 6 ms beside bursts of 0.5 ms",
        alike(*(fan_out(14, helpers, _short(threads), 6000) for helpers, threads in _SIZES)),
    ),
    Load("latency-vm", "LAT", "one fan-out workload beside others of bursts only", _latency_vm),
    Load("memcached", "-", "memcached beside bursts of 10 ms in the same workload", _memcached),
    Load(STEP, "E10", "background begins in the middle, and half as many requests more", _step),
    Load("idle", "-", "`fanout` with next to no requests, whatever utilisation is asked", _idle),
)

LOADS: Mapping[str, Load] = {load.name: load for load in _LOADS}
