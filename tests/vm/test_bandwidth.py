"""What CPU limits do on an unpatched kernel, and what a small burst makes of it: in a counted guest."""

from __future__ import annotations

import pytest

from experiments.places.counted.machine import Run
from guests.qemu import Qemu
from tests.ahead import Ahead
from tests.vm.errands import ShortFigures

FIGURES = ShortFigures()

pytestmark = [pytest.mark.vm, pytest.mark.ahead.with_args(FIGURES)]


@pytest.fixture
def said(ahead: Ahead, qemu: Qemu) -> tuple[Run, ...]:
    return ahead.result(FIGURES)


def test_a_quota_that_suffices_stops_threads_in_every_second_period_and_with_a_burst_in_none(
    said: tuple[Run, ...],
) -> None:
    plain, burst, _ = said
    assert 40 <= float(str(plain["throttled_percent"])) <= 60
    assert float(str(burst["throttled_percent"])) < 2
    assert float(str(burst["runtime_ms"])) < float(str(plain["runtime_ms"]))


def test_eight_writes_a_second_of_the_limit_that_is_there_hand_out_half_a_cpu_more(
    said: tuple[Run, ...],
) -> None:
    assert 1.3 <= float(str(said[2]["cpus_used"])) <= 2.0
