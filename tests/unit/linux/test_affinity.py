"""CPU masks beyond the 1024 CPUs at which other tools stop (runc #5025, crun #2229)."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasec.linux import affinity

CPUS = st.frozensets(st.integers(0, 8191), max_size=64)


@given(CPUS, st.sampled_from([128, 512, 1024]))
def test_a_mask_holds_exactly_its_cpus(cpus: frozenset[int], size: int) -> None:
    mask = affinity.mask_of(cpus, size)
    assert affinity.cpus_of(mask) == tuple(sorted(cpus))
    assert len(mask) % 8 == 0
    assert len(mask) >= size


@pytest.mark.parametrize("cpu", [0, 63, 64, 1023, 1024, 4095, 8191])
def test_the_mask_grows_with_its_highest_cpu(cpu: int) -> None:
    mask = affinity.mask_of((cpu,), 128)
    assert affinity.cpus_of(mask) == (cpu,)
    assert len(mask) == max(128, cpu // 64 * 8 + 8)


def test_our_own_mask_agrees_with_the_library() -> None:
    assert set(affinity.get(0)) == os.sched_getaffinity(0)
    assert affinity.cpus_of(affinity.mask(os.getpid())) == affinity.get(0)


def test_a_missing_thread_has_an_empty_mask_for_comparing_and_an_error_otherwise() -> None:
    assert affinity.mask(2**22 + 1) == b""
    with pytest.raises(ProcessLookupError):
        affinity.get(2**22 + 1)
