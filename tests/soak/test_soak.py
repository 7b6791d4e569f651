"""The soak in short, and that its long form would see a leak."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import report
from .flat import DESCRIPTORS, LEAST_S, MEMORY_KIB, Sample, faults
from .soak import soak

SHORT_S = 6.0


def series(memory_per_s: float, descriptors_per_s: float, length_s: float = 4 * LEAST_S) -> list[Sample]:
    """A saw-tooth of 300 KiB and 5 descriptors on top of a line."""
    return [
        Sample(at, int(40_000 + memory_per_s * at + at % 7 * 50), int(60 + descriptors_per_s * at + at % 6))
        for at in range(int(length_s))
    ]


def test_what_goes_up_and_down_is_flat() -> None:
    assert faults(series(0, 0)) == []


def test_a_slow_leak_of_memory_and_of_descriptors_is_seen() -> None:
    half_s = 2 * LEAST_S
    assert [each.split(":")[0] for each in faults(series(2 * MEMORY_KIB / half_s, 0))] == ["memory (KiB)"]
    assert [each.split(":")[0] for each in faults(series(0, 2 * DESCRIPTORS / half_s))] == ["descriptors"]


def test_what_is_taken_once_at_the_start_is_no_leak() -> None:
    begun = [one._replace(memory_kib=20_000) for one in series(0, 0)[:60]]
    assert faults([*begun, *series(0, 0)[60:]]) == []


def test_a_short_run_is_not_judged_by_its_slope() -> None:
    assert faults(series(1000, 1, LEAST_S)) == []


@pytest.mark.thorough
@pytest.mark.host
def test_kills_reloads_and_rotations_leave_everything_as_it_was(tmp_path: Path) -> None:
    found = soak(SHORT_S, tmp_path, 1, lambda _: None)
    assert found.faults() == []
    assert found.kills >= 1
    assert found.reloads >= 1
    report.write(found, tmp_path)
    assert (tmp_path / "soak.png").stat().st_size > 10_000
