"""How soon a CPU limit is found that somebody sets while our scheduler runs."""

from __future__ import annotations

import pytest

from dasec.hosts.sched_ext.limits import LimitWatch

PROMISED_NS = 5_000_000_000
"""docs/sched-ext.md, "What is not there yet"."""

FIRST_NS = 7_000_000_000_000
LOOKS = 40


class Groups:
    """Whose walks are counted; a limit is set right after one of them."""

    def __init__(self, walk_ns: int = 15_000_000) -> None:
        self.walk_ns = walk_ns
        self.used_ns = self.walks = 0
        self.set_at: int | None = None

    def cpu_ns(self) -> int:
        return self.used_ns

    def limits(self) -> list[str]:
        self.walks += 1
        self.used_ns += self.walk_ns
        return [] if self.set_at is None else ["web.scope has a CPU limit"]


@pytest.mark.parametrize(
    "apart_s",
    [
        pytest.param(0.08, id="every period"),
        pytest.param(1.0, id="the command"),
        pytest.param(1.3, id="the command with a long table"),
        pytest.param(1.6, id="as late as the budget lets a look come"),
    ],
)
def test_a_limit_is_found_within_five_seconds(apart_s: float) -> None:
    groups = Groups()
    watch, found = LimitWatch(groups.limits, groups.cpu_ns), []
    for number in range(LOOKS + int(PROMISED_NS / 1e9 / apart_s)):
        now_ns = FIRST_NS + int(number * apart_s * 1e9)
        if watch.found(now_ns) is not None:
            found.append(now_ns)
        if groups.set_at is None and groups.walks == 2:
            groups.set_at = now_ns
    assert groups.set_at is not None
    assert found[0] - groups.set_at <= PROMISED_NS


def test_groups_are_not_walked_over_at_each_look() -> None:
    assert walks_in_eight_seconds(Groups()) == 3


def test_who_makes_very_many_groups_does_not_make_us_walk_all_the_time() -> None:
    """A hundred thousand take 1.5 s."""
    assert walks_in_eight_seconds(Groups(walk_ns=1_500_000_000)) == 1


def walks_in_eight_seconds(groups: Groups) -> int:
    watch = LimitWatch(groups.limits, groups.cpu_ns)
    for number in range(100):
        watch.found(FIRST_NS + number * 80_000_000)
    return groups.walks
