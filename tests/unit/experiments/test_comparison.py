"""Every arm against the default, from planted results."""

from __future__ import annotations

import pytest

from dasec.lab.kit.arms import CONTROL, NONE
from dasec.lab.kit.ratios import Effect
from dasec.lab.kit.results import ALL, Measured
from experiments.studies.fig13.comparison import LATENCIES, compare, verdict_on
from tests.unit.lab.demo.build import TENANTS, measured


@pytest.fixture(scope="module")
def planted() -> Measured:
    """One policy that halves every latency, one that makes them half as long again, one like the default."""
    return measured(
        {
            NONE: lambda repetition: 1.0,
            CONTROL: lambda repetition: 1.0 + 0.01 * (repetition - 2),
            "better": lambda repetition: 0.5 + 0.01 * repetition,
            "worse": lambda repetition: 1.5 - 0.01 * repetition,
            "equal": lambda repetition: 1.0 + 0.005 * (repetition - 2),
        }
    )


def test_planted_effects_get_their_verdicts(planted: Measured) -> None:
    comparisons = compare(planted)
    assert verdict_on("better", comparisons) is Effect.GAIN
    assert verdict_on("worse", comparisons) is Effect.HARM
    assert verdict_on("equal", comparisons) is Effect.NO_EFFECT
    for workload in (ALL, *planted.kinds, *TENANTS):
        assert verdict_on("better", comparisons, workload) is Effect.GAIN


def test_planted_ratios_are_estimated(planted: Measured) -> None:
    found = {(one.arm, one.metric): one.estimate for one in compare(planted) if one.workload == ALL}
    assert found["better", "mean"].ratio == pytest.approx(0.52, rel=0.01)
    assert found["worse", "p99"].ratio == pytest.approx(1.48, rel=0.01)


def test_the_control_itself_and_the_throughput_get_no_verdict(planted: Measured) -> None:
    for one in compare(planted):
        assert (one.verdict is None) == (one.arm == CONTROL or one.metric not in LATENCIES)


def test_too_few_repetitions_are_said_to_be_too_few() -> None:
    results = measured({NONE: lambda _: 1.0, CONTROL: lambda _: 1.0, "better": lambda _: 0.5}, repetitions=2)
    assert verdict_on("better", compare(results)) is Effect.UNDECIDED
