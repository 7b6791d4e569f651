"""What holds for `critical` also where its cost budget delays the looks (budget.py)."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from dasec.budget import LONGEST_NS
from dasec.critical import Critical

from ..builders import MS, Group, Row, period
from .test_critical import PERIOD_NS, gained_beyond_a_turn, tricks

LOOKS = 60
LATE = LONGEST_NS // PERIOD_NS


def stretched(row: Row) -> Row:
    """The same for as long as no look comes."""
    return replace(
        row,
        consumed_ms=row.consumed_ms * LATE,
        ready_ms=row.ready_ms * LATE,
        woken_by=[(waker, count * LATE) for waker, count in row.woken_by],
        wakeups=None if row.wakeups is None else row.wakeups * LATE,
        external=None if row.external is None else row.external * LATE,
        chain_ms=None if row.chain_ms is None else row.chain_ms * LATE,
    )


@settings(max_examples=30)
@given(script=tricks, every=st.sampled_from([1, 3]))
def test_whoever_pretends_gains_what_one_late_look_gives_once_and_no_more_each_time(
    script: list[list[Row]], every: int
) -> None:
    # as in test_critical.py, but for the length of what one look can gain: a look, no more than 1.6 s
    policy = Critical()
    history = [
        period(
            Group("a", list(map(stretched, script[at // every % len(script)]))),
            index=at,
            length_ms=LONGEST_NS / MS,
        )
        for at in range(LOOKS)
    ]
    assert gained_beyond_a_turn(policy, history) <= 4 * (6.7 / 2 * PERIOD_NS + 6 * LONGEST_NS) * 1024
