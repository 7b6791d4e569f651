"""The study of settling: its model is the daemon's own policy and budget, and tells the two budgets apart."""

from __future__ import annotations

from dasec.budget import LEAST_PERCENT, default_percent
from experiments.studies.settling.model import LOOK_NS, MS, Step, steps

CALM_NS, ON_NS, OFF_NS = 10_000 * MS, 4_000 * MS, 6_000 * MS


def later_steps(percent: float) -> list[int]:
    """How soon 256 vCPUs followed each step but the first, in ms."""
    begins = [CALM_NS + number * (ON_NS + OFF_NS) for number in range(4)]
    _, *later = steps(256, 80, percent, [(begin, begin + ON_NS) for begin in begins])
    return [step.settled_ns // MS for step in later if step.settled_ns is not None]


def test_256_vcpus_follow_each_step_with_a_tenth_of_a_percent_of_80_cores_and_not_with_one_of_a_core() -> (
    None
):
    before, now = later_steps(LEAST_PERCENT), later_steps(default_percent(80))
    assert max(now) < 500
    assert max(before) > 1000


def test_a_step_is_answered_when_the_preference_has_come_to_stay() -> None:
    assert Step(100, ((150, 1.0), (200, 20.0), (250, 2.0), (300, 5.0), (350, 20.0))).settled_ns == 200
    assert Step(100, ((150, 20.0), (200, 2.0))).settled_ns is None


def test_there_is_a_cost_for_each_number_of_vcpus() -> None:
    assert list(LOOK_NS) == [16, 64, 256]
    assert sorted(LOOK_NS.values()) == list(LOOK_NS.values())
