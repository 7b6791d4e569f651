"""What a run says of the CPU time that was not its workloads'."""

from __future__ import annotations

import pytest

from experiments.drivers.driver import Outcome
from experiments.run.measure import clients_used_s


@pytest.mark.parametrize(("seen_s", "used_s"), [(0.72, 0.72), (-1.4, 0.7), (0.1, 0.7)])
def test_a_client_that_ended_before_it_was_looked_at_has_used_what_it_says(
    seen_s: float, used_s: float
) -> None:
    outcomes = (
        Outcome(100, "requests", 5.0, client_cpu_s=0.3),
        Outcome(90, "requests", 5.0, client_cpu_s=0.4),
    )
    assert clients_used_s(seen_s, outcomes) == used_s
