"""A sample of what `make scx-stress` does for ten minutes."""

from __future__ import annotations

import random

from .machine import NEEDS_SCHED_EXT
from .stress import stress

pytestmark = NEEDS_SCHED_EXT

SAMPLE_S = 20.0


def test_nothing_that_happens_to_threads_groups_and_cpus_puts_it_out() -> None:
    done = stress(SAMPLE_S, random.Random(1))
    assert done.groups > 5
    assert done.hotplugs > 2
    assert done.loads > 1
