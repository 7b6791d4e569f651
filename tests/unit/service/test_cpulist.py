"""The kernel's text form of CPU sets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasec.linux.cpulist import LARGEST_CPU, parse, render


@given(st.frozensets(st.integers(0, LARGEST_CPU)))
def test_what_was_rendered_parses_to_the_same(cpus: frozenset[int]) -> None:
    assert parse(render(cpus)) == cpus


@pytest.mark.parametrize(
    ("text", "cpus"), [("0-3,8\n", {0, 1, 2, 3, 8}), ("5", {5}), ("", set()), ("\n", set()), ("1, 2", {1, 2})]
)
def test_the_kernels_forms_are_understood(text: str, cpus: set[int]) -> None:
    assert parse(text) == cpus


def test_neighbours_are_rendered_as_a_range() -> None:
    assert render([3, 1, 2, 7, 9, 10]) == "1-3,7,9-10"


@pytest.mark.parametrize("text", ["x", "1-", "-1", "1--2", "3-1", "1,,2", "0-65536", "1.5", "²"])
def test_what_is_no_list_says_what_is_wrong(text: str) -> None:
    with pytest.raises(ValueError, match="is neither|is not a range"):
        parse(text)
