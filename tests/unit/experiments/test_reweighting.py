"""The model of two groups, one of which is re-weighted while it runs."""

from __future__ import annotations

import pytest

from experiments.studies.reweighting.model import TICK_NS, compete


def test_re_weighted_by_the_wrong_rule_a_group_starves_the_one_beside_it() -> None:
    cpu, starved_ns = compete(right=False)
    assert cpu.b.got_ns < 100_000_000
    assert starved_ns > 1_500_000_000


def test_re_weighted_right_both_get_what_their_weights_are_worth() -> None:
    cpu, starved_ns = compete(right=True)
    assert cpu.a.got_ns / (cpu.a.got_ns + cpu.b.got_ns) == pytest.approx(0.37, abs=0.04)
    assert starved_ns <= 2 * TICK_NS
