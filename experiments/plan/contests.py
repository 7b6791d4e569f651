"""Two workloads side by side that together want more than all cores, honest ones, and ones that pretend:
`contests = [...]`. Pure; guests import it.

For every core a workload has as many computing threads as a scenario says, so that a larger machine is
saturated alike. A thread that "computes" has bursts without end before it; it never sleeps.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, Field

from dasec.critical.parameters import Fairness
from dasec.lab.kit.arms import settings_of
from dasec.lab.kit.bench import RunPlan
from dasec.lab.kit.layout import GroupLayout
from dasec.lab.kit.load_driver import NO_REQUESTS_PER_S
from dasec.lab.kit.scenario import Scenario, Tenant, service

from .blocks import Block
from .terms import Cells, Number, PlacedCell, Terms, one_of

ENDLESS = {"background-burst-us": "10000", "background-rate": "100000"}
"""A thousand times what a thread can do: its backlog never ends."""

REQUESTS_PER_S = 150.0
"""A core; of 1.7 ms each. Critical work of a quarter of a core, which both workloads' threads leave over when
they have equal parts, so that it is served with and without a policy."""

TURN_US = 1000
"""What an actor computes between two wake-ups: 5000 of them a second, far more than an honest service."""

PHASE_S = 2
"""The role of an actor lasts so long; several memories of the policy (half a second)."""

IDLE_A_CORE = 6
SHORT_PER_S = 500.0


def computing(name: str, threads: int, idle: int = 0) -> Tenant:
    """Threads that only compute; perhaps others that sleep for ever."""
    options = {"variant": "fanout", "helpers": str(idle), "background": str(threads)} | ENDLESS
    return service(name, 1 + idle + threads, NO_REQUESTS_PER_S, options)


def serving(name: str, cores: int, threads: int) -> Tenant:
    """Fan-out with two helpers, and threads that compute."""
    options = {"variant": "fanout", "helpers": "2", "background": str(threads)} | ENDLESS
    rate_per_s = REQUESTS_PER_S * cores / 2
    return service(name, 3 + threads, rate_per_s, options, ("main", "helper-*"))


def pretending(name: str, actors: int, threads: int, phase_s: int = 0) -> Tenant:
    """Actors that hand turns to each other, and threads that compute."""
    options = {
        "variant": "pretend",
        "helpers": str(actors),
        "helper-us": str(TURN_US),
        "alternate-s": str(phase_s),
        "background": str(threads),
    }
    return service(name, 1 + actors + threads, NO_REQUESTS_PER_S, options | ENDLESS)


def short_bursts(name: str, threads: int) -> Tenant:
    """Threads that sleep and compute for about 1 ms in turn, each woken by a sibling of its own."""
    options = {
        "variant": "fanout",
        "helpers": "0",
        "background": str(threads),
        "background-burst-us": "10",
        "background-rate": f"{SHORT_PER_S:g}",
        "background-wakes": "peer",
        "peer-us": "1000",
    }
    return service(name, 1 + 2 * threads, NO_REQUESTS_PER_S, options)


@dataclass(frozen=True, slots=True)
class Contest:
    """Who is beside whom, on so many cores."""

    about: str
    build: Callable[[int], tuple[Tenant, Tenant]]

    def scenario(self, cores: int) -> Scenario:
        """As the demo's machinery takes it."""
        return Scenario(cores, self.build(cores))


CONTESTS: Mapping[str, Contest] = {
    "equals": Contest(
        "two workloads that compute",
        lambda cores: (computing("one", cores), computing("other", cores)),
    ),
    "fanout": Contest(
        "fan-out with computing threads, beside one that computes",
        lambda cores: (serving("fanout", cores, cores), computing("batch", cores)),
    ),
    "faker": Contest(
        "actors, beside one that computes",
        lambda cores: (pretending("faker", 2 * cores, 0), computing("batch", cores)),
    ),
    "faker-lends": Contest(
        "actors with computing threads to take weight from, beside one that computes",
        lambda cores: (pretending("faker", 2 * cores, cores), computing("batch", cores)),
    ),
    "faker-fanout": Contest(
        "the same, beside fan-out with computing threads",
        lambda cores: (pretending("faker", 2 * cores, cores), serving("fanout", cores, cores)),
    ),
    "alternating": Contest(
        f"actors that only take turns for {PHASE_S} s, then compute for {PHASE_S} s, beside batch",
        lambda cores: (pretending("actors", 2 * cores, cores, PHASE_S), computing("batch", cores)),
    ),
    "sleepers": Contest(
        "computing threads among many that sleep, beside one that computes",
        lambda cores: (computing("crowd", cores, IDLE_A_CORE * cores), computing("batch", cores)),
    ),
    "short": Contest(
        "threads that sleep 1 ms and compute 1 ms, woken by siblings, beside one that computes",
        lambda cores: (short_bursts("short", 2 * cores), computing("batch", cores)),
    ),
}


POLICY = "critical"


def _contest(name: str) -> str:
    """The name. ValueError if there is no such contest."""
    return one_of(name, CONTESTS)


@dataclass(frozen=True, slots=True)
class ContestCell:
    """One contest in one layout."""

    contest: str
    layout: str
    scenario: Scenario

    @property
    def name(self) -> str:
        """As the names of files have it."""
        return f"{self.contest}-{self.layout}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contests(Terms):
    """Each contest in each layout, under `critical` alone."""

    contests: Annotated[tuple[Annotated[str, AfterValidator(_contest)], ...], Field(min_length=1)]
    layouts: Annotated[tuple[GroupLayout, ...], Field(min_length=1)] = (GroupLayout.FLAT, GroupLayout.VM)
    policies: tuple[str, ...] = (POLICY,)
    pinned: bool = False
    """In a guest: each thread keeps to one core, so that weights are compared and not where the kernel puts
    threads."""
    fairness: Fairness = Fairness.STRICT
    """`critical`'s, towards other workloads (docs/decisions/0037-fairness.md)."""
    repetitions: Number = 6

    def __post_init__(self) -> None:
        self.check_machine()
        if self.policies != (POLICY,):
            raise ValueError(f"policies: contests are about {POLICY} alone: leave it out")

    @property
    def same_requests(self) -> bool:
        """On saturated cores how much was answered is a result."""
        return False

    @property
    def is_seated(self) -> bool:
        """As the file says."""
        return self.pinned

    @property
    def cells(self) -> Cells[ContestCell]:
        """All of them."""
        return Cells(
            tuple(
                ContestCell(contest, str(layout), CONTESTS[contest].scenario(self.cpus))
                for layout in self.layouts
                for contest in self.contests
            )
        )

    def plan(self, block: Block[PlacedCell]) -> RunPlan:
        """The block as the kit takes it; the guard is off, the policy itself is measured."""
        contest, _, layout = block.cell.name.rpartition("-")
        return RunPlan(
            block.cell.scenario,
            GroupLayout(layout),
            self.timing,
            block.arms,
            self.repetitions,
            random.Random(f"{self.seed}/{contest}/{layout}").randrange(2**31),
            {POLICY: f'{settings_of(POLICY)}[{POLICY}]\nfairness = "{self.fairness}"\n'},
        )
