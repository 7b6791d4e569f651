"""What a line says where a host is unlike itself: a noisy host hides what is small, and no more than that."""

from __future__ import annotations

import math
import random

import pytest

from dasec.lab.demo.lines import Answer, Line
from dasec.lab.kit.ratios import robust

DEMOS = 1000
REPETITIONS = 12


def line(chance: random.Random, truth: float, noise: float) -> Line:
    """Of a demo in which each run is off by so much (standard deviation of the logarithm)."""
    effect, control = [], []
    for _ in range(2):
        plain, again, policy = (
            [math.exp(chance.gauss(0, noise)) for _ in range(REPETITIONS)] for _ in range(3)
        )
        control.append(robust([b / a for a, b in zip(plain, again, strict=True)]))
        effect.append(
            robust([truth * c / math.sqrt(a * b) for a, b, c in zip(plain, again, policy, strict=True)])
        )
    repetitions = ((1.0,) * REPETITIONS,) * 2
    return Line("busy", "any", tuple(effect), tuple(control), repetitions, (1, 1), (1, 1), 1.0, 0.9, 0.5)


def told(truth: float, noise: float) -> dict[Answer, float]:
    """How often each answer is given."""
    chance = random.Random(1)
    answers = [line(chance, truth, noise).answer for _ in range(DEMOS)]
    return {each: answers.count(each) / DEMOS for each in Answer}


@pytest.mark.parametrize("noise", [0.1, 0.3, 0.6, 1.0])
def test_noise_alone_is_called_an_effect_in_at_most_five_of_a_hundred_demos(noise: float) -> None:
    found = told(1.0, noise)
    assert found[Answer.GAIN] + found[Answer.HARM] <= 0.05


@pytest.mark.parametrize("noise", [0.1, 0.3, 0.5])
def test_a_gain_of_more_than_half_is_seen_on_a_host_that_differs_from_itself(noise: float) -> None:
    assert told(0.45, noise)[Answer.GAIN] >= 0.9


def test_what_a_noisy_host_hides_is_not_said_to_be_nothing() -> None:
    assert told(0.8, 0.8)[Answer.NOTHING] <= 0.1
