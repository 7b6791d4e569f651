"""Model units and kernel units."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasec.knobs.knob import NativeKnob
from dasec.knobs.masks import AFFINITY
from dasec.knobs.nice import NICE
from dasec.knobs.slices import SLICE
from dasec.knobs.weights import WEIGHT_V1, WEIGHT_V2
from dasec.model import Core


def test_neutral_is_neutral_on_either_version() -> None:
    assert WEIGHT_V1.native(1024) == 1024
    assert WEIGHT_V2.native(1024) == 100
    assert WEIGHT_V2.model(100) == 1024


@pytest.mark.parametrize(("weight", "native"), [(1126, 110), (922, 90), (1, 1), (4, 1), (10_000_000, 10_000)])
def test_v2_weights_are_rounded_and_stay_in_the_kernels_range(weight: int, native: int) -> None:
    assert WEIGHT_V2.native(weight) == native


@given(st.integers(2, 262_144))
def test_v1_weights_are_the_models(weight: int) -> None:
    assert WEIGHT_V1.model(WEIGHT_V1.native(weight)) == weight


@given(st.integers(128, 65_536))
def test_a_v2_weight_is_within_its_coarseness(weight: int) -> None:
    back = WEIGHT_V2.model(WEIGHT_V2.native(weight))
    assert isinstance(back, int)
    assert abs(back - weight) <= 6


@given(st.frozensets(st.integers(0, 8191).map(Core), max_size=20))
def test_masks_are_sorted_tuples_and_come_back(mask: frozenset[Core]) -> None:
    native = AFFINITY.native(mask)
    assert native == tuple(sorted(mask))
    assert AFFINITY.model(native) == mask


def test_a_slice_beyond_the_kernels_bounds_is_brought_inside() -> None:
    assert SLICE.native(1) == 100_000
    assert SLICE.native(10**12) == 100_000_000


@pytest.mark.parametrize(
    ("kind", "weight", "in_force"),
    [
        (WEIGHT_V2, 2, 10),
        (WEIGHT_V2, 7, 10),
        (WEIGHT_V2, 10_000_000, 102_400),
        (WEIGHT_V1, 1, 2),
        (NICE, 1, 15),
        (NICE, 10**6, 88_818),
    ],
)
def test_a_weight_at_the_kernels_bound_is_what_is_in_force_not_what_was_wished(
    kind: NativeKnob, weight: int, in_force: int
) -> None:
    assert kind.taken(weight) == in_force


@pytest.mark.parametrize("kind", [WEIGHT_V1, WEIGHT_V2, NICE])
@given(weight=st.integers(30, 60_000))
def test_within_the_kernels_bounds_a_weight_is_taken_as_it_was_wished(kind: NativeKnob, weight: int) -> None:
    assert kind.taken(weight) == weight
