"""Whatever happens, in whatever order, within the bounds of each scenario: all states, none of them wrong."""

from __future__ import annotations

import pytest

from dasec.knobs.masks import AFFINITY
from dasec.knobs.quotas import QUOTA
from dasec.knobs.slices import SLICE
from dasec.knobs.weights import WEIGHT_V1
from dasec.model import Knob, Outcome
from dasec.safety.journal import journal as journal_module
from dasec.safety.journal.journal import NAME

from . import scenarios, syscalls
from .explore import explore
from .files import on
from .memory import known
from .worlds import Scenario, World, roster, wishes

KIND_OF = {
    Knob.AFFINITY: AFFINITY,
    Knob.RESCHEDULING_LATENCY: SLICE,
    Knob.WEIGHT: WEIGHT_V1,
    Knob.CAP: QUOTA,
}

LONG = ("own groups",)
"""Explored with --run-slow (`make chaos`)."""

HOLD = [
    pytest.param(one, marks=pytest.mark.slow if one.name in LONG else (), id=one.name)
    for one in scenarios.ALL
]


@pytest.mark.parametrize("scenario", HOLD)
def test_nothing_of_ours_is_left_and_nothing_of_others_is_lost(scenario: Scenario) -> None:
    with syscalls.in_place():
        found = explore(World.of(scenario))
    assert not found.wrong, str(found)
    print(f"{scenario.name}: {found}")


@pytest.mark.parametrize("scenario", scenarios.ALL, ids=lambda one: str(one.name))
def test_the_daemon_of_the_model_writes_every_knob_at_its_first_look(scenario: Scenario) -> None:
    """Else the exploration says nothing: where the model lacks a file, the daemon leaves a knob alone."""
    world = World.of(scenario)
    with syscalls.in_place():
        assert world.go("start", ())
        assert world.go("look", ())
    refs = known(world.machine.files[NAME]).held
    held = {(ref.sake.tid, ref.kind) for ref in refs if ref.sake is not None}
    kinds = {KIND_OF[knob] for knob in scenario.knobs}
    assert held >= {(tid, kind) for tid in world.machine.tasks for kind in kinds}


def looked(world: World) -> list[Outcome]:
    """What a look's wishes came to."""
    assert world.host is not None
    world.machine.steps = []
    with on(world.machine, world.descriptors):
        snapshot = world.host.observe(roster())
        return [one.outcome for one in world.host.apply(tuple(wishes(snapshot, world.law.knobs)))]


@pytest.mark.parametrize(
    ("scenario", "room", "outcomes", "holds"),
    [
        (Scenario("full", scenarios.two_threads, {}), 3, "AAAR", 3),
        (Scenario("full of nothing", scenarios.two_threads, {}), 0, "RRRR", 0),
        (Scenario("moves", scenarios.two_threads, {}, knobs=(Knob.WEIGHT,), own_groups=True), 3, "AR", 2),
    ],
    ids=lambda given: given.name if isinstance(given, Scenario) else str(given),
)
def test_when_the_journal_is_full_who_is_in_it_is_written_to_and_only_others_are_refused(
    monkeypatch: pytest.MonkeyPatch, scenario: Scenario, room: int, outcomes: str, holds: int
) -> None:
    monkeypatch.setattr(journal_module, "MAX_HELD", room)
    world = World.of(scenario)
    expected = [Outcome.APPLIED if letter == "A" else Outcome.REJECTED for letter in outcomes]
    with syscalls.in_place():
        assert world.go("start", ())
        for _ in range(3):
            assert looked(world) == expected
            assert len(known(world.machine.files[NAME]).held) == holds
            world.check()
    assert sum(step.subject == "journal" for step in world.machine.steps) == (1 if holds else 0)
