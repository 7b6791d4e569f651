"""Fair parts of what there is only so much of."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dasec.parts import fair_parts

SIZES = st.lists(st.integers(0, 5000), max_size=30)


def test_one_that_wants_too_much_leaves_the_others_theirs() -> None:
    assert fair_parts([4000, 10, 300], 1000) == [690, 10, 300]
    assert fair_parts([10, 4000, 4000], 1000) == [10, 495, 495]


@given(SIZES, st.integers(0, 20_000))
def test_nobody_gets_more_than_he_wants_and_nothing_is_left_that_somebody_wants(
    wanted: list[int], room: int
) -> None:
    parts = fair_parts(wanted, room)
    assert all(0 <= part <= want for part, want in zip(parts, wanted, strict=True))
    assert sum(parts) == min(room, sum(wanted))


@given(SIZES, st.integers(0, 20_000))
def test_who_does_not_get_all_gets_no_less_than_anybody_else(wanted: list[int], room: int) -> None:
    parts = fair_parts(wanted, room)
    cut = [part for part, want in zip(parts, wanted, strict=True) if part < want]
    assert not cut or min(cut) >= max(parts) - 1
