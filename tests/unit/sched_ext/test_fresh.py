"""For how long the scheduler goes by the daemon's words."""

from __future__ import annotations

import pytest

from dasec.hosts.sched_ext.kernel import fresh_until_ns

NOW_NS = 7_000_000_000_000


@pytest.mark.parametrize(
    ("since_s", "counts_s"),
    [
        pytest.param(0, 2, id="the first look"),
        pytest.param(0.08, 2, id="every period"),
        pytest.param(0.5, 5, id="a daemon that rests"),
        pytest.param(1.6, 16, id="as late as the budget lets one come"),
        pytest.param(3600, 20, id="a host that was suspended"),
    ],
)
def test_words_count_for_ten_looks_for_2_s_at_least_and_20_s_at_most(since_s: float, counts_s: float) -> None:
    assert fresh_until_ns(NOW_NS, NOW_NS - int(since_s * 1e9)) == NOW_NS + int(counts_s * 1e9)
