"""One workload of a load: its threads, what a request and a burst cost, and how often at factor 1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from dasec.lab.kit.load_driver import NO_REQUESTS_PER_S
from dasec.lab.kit.scenario import Tenant, service

MOST_OF_A_THREAD = 0.9
"""A thread, or a stage that requests pass one by one, that is asked for more of one core than this builds a
queue of its own whatever a scheduler does."""

LOG_EVERY_US = 1000
"""The load tool's logger is woken so often within a burst (experiments/load/src/background.c)."""


@dataclass(frozen=True, slots=True)
class Background:
    """Threads that burst on a schedule of their own, and whom each burst wakes."""

    threads: int
    burst_us: int
    bursts_per_s: float
    """Of all threads together: fewer threads burst more often."""
    wakes: str = "none"
    woken_us: int = 0
    """What the logger or the peer computes for each wake-up."""

    @property
    def vcpus(self) -> int:
        """With the logger, or a peer for each."""
        return self.threads + {"none": 0, "logger": 1, "peer": self.threads}[self.wakes]

    @property
    def cores(self) -> float:
        """What all of it computes at factor 1."""
        woken = {"none": 0, "logger": self.burst_us / LOG_EVERY_US, "peer": 1}[self.wakes]
        return self.bursts_per_s * (self.burst_us + woken * self.woken_us) / 1e6

    def options(self, factor: float) -> Iterator[tuple[str, str]]:
        """As the load tool takes it."""
        yield "background", str(self.threads)
        yield "background-burst-us", str(self.burst_us)
        yield "background-rate", f"{self.bursts_per_s * factor / self.threads:g}"
        yield "background-wakes", self.wakes
        if self.wakes != "none":
            yield f"{self.wakes}-us", str(self.woken_us)


@dataclass(frozen=True, slots=True)
class Shape:
    """A workload at factor 1. `slowest_us` is what a request takes of the stage that passes fewest of them;
    `per_s` are further options that are rates and grow with the factor; `extra_cores` is what those cost."""

    vcpus: int
    critical: tuple[str, ...]
    rate_per_s: float
    request_us: float
    slowest_us: float
    options: Mapping[str, str] = field(default_factory=dict)
    per_s: Mapping[str, float] = field(default_factory=dict)
    extra_cores: float = 0.0
    background: Background | None = None
    fed: bool = False

    @property
    def threads(self) -> int:
        """All of its vCPUs."""
        return self.vcpus + (self.background.vcpus if self.background else 0)

    @property
    def cores(self) -> float:
        """What it computes at factor 1."""
        background = self.background.cores if self.background else 0.0
        return self.rate_per_s * self.request_us / 1e6 + self.extra_cores + background

    def most_factor(self) -> float:
        """The factor beyond which one of its threads alone is the limit."""
        needs = [self.rate_per_s * self.slowest_us / 1e6]
        if self.background:
            needs.append(self.background.cores / self.background.threads)
        return MOST_OF_A_THREAD / max(needs)

    def service(self, name: str, factor: float, more: Mapping[str, str] | None = None) -> Tenant:
        """The workload with all its rates times `factor`."""
        options = {**self.options, **{key: f"{rate * factor:g}" for key, rate in self.per_s.items()}}
        if self.background:
            options.update(self.background.options(factor))
        rate_per_s = round(self.rate_per_s * factor, 2) or NO_REQUESTS_PER_S
        told = options | dict(more or {})
        return service(name, self.threads, rate_per_s, told, self.critical, fed=self.fed)


def fan_out(
    rate_per_s: float,
    helpers: int,
    background: Background | None,
    helper_us: int = 600,
    imbalance: int = 1,
) -> Shape:
    """main works 0.5 ms, then all helpers at once; main takes the next request when all are done."""
    options = {"variant": "fanout", "helpers": str(helpers), "helper-us": str(helper_us)}
    # The mean of the longest of n exponential times is their mean × (1 + 1/2 + … + 1/n); one that is three
    # times as long is nearly always the longest.
    longest = sum(1 / number for number in range(1, helpers + 1)) if imbalance == 1 else imbalance * 1.1
    return Shape(
        1 + helpers,
        ("main", "helper-*"),
        rate_per_s,
        500 + (helpers - 1 + imbalance) * helper_us,
        500 + longest * helper_us,
        options | ({"imbalance": str(imbalance)} if imbalance > 1 else {}),
        background=background,
    )


def server(background: Background, *, answers: bool = False) -> Shape:
    """One thread that another process feeds, and that may wake it with its answers."""
    options = {"variant": "fanout", "helpers": "0", "serial-us": "1100"}
    if answers:
        options["answers"] = ""
    return Shape(1, ("main",), 136, 1100, 1100, options, background=background, fed=True)


def pipeline(stages: int, background: Background) -> Shape:
    """main and stages of 0.3 ms, of which one takes three times as long; requests overtake nobody."""
    options = {"variant": "pipeline", "stages": str(stages), "serial-us": "300", "helper-us": "300"}
    return Shape(
        1 + stages,
        ("main", "stage-*"),
        60,
        300 * (1 + stages + 2),
        900,
        options | {"imbalance": "3"},
        background=background,
    )


def convoy(workers: int, background: Background) -> Shape:
    """Workers share a lock with a holder that keeps it for 3 ms now and then."""
    options = {"variant": "convoy", "helpers": str(workers), "serial-us": "300", "hold-us": "3000"}
    return Shape(
        2 + workers,
        ("main", "worker-*", "holder"),
        100,
        920,
        max(300, 620 / workers) + 300,
        options,
        {"hold-rate": 10},
        0.03,
        background,
    )


def batch(background: Background) -> Shape:
    """Nobody asks it anything; its main thread sleeps."""
    return Shape(1, (), 0, 0, 0, {"variant": "fanout", "helpers": "0"}, background=background)
