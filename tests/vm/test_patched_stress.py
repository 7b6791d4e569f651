"""Random input and the roughest life leave nothing in the kernel's log; and the guest repeats itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from guests.counted import Job
from tests.vm.conftest import CONSOLE_TAIL, Boot
from tests.vm.errands import JOBS, SELFTESTS

pytestmark = pytest.mark.vm

DOCUMENTED = {"EINVAL", "ERANGE", "ESRCH", "E2BIG"}
WRITES = 100_000
REPEATED = ("states", "late")


@pytest.mark.parametrize("job", JOBS + SELFTESTS)
def test_the_job_ends_and_the_kernel_has_nothing_to_complain_about(said: dict[str, Job], job: str) -> None:
    assert said[job].exit_status == 0, said[job].text[-CONSOLE_TAIL:]
    assert said[job].complaints == ()
    assert said[job].tainted == 0


def test_a_hundred_thousand_random_writes_are_taken_whole_or_not_at_all(said: dict[str, Job]) -> None:
    fuzz = said["fuzz"]
    (record,) = fuzz.named("fuzz")
    assert record.number("broken") == 0, [record for record in fuzz.records if record.name == "breach"]
    assert record.number("valid_refused") == 0
    answers = {key: record.number(key) for key in record.values if key[0] == "E"}
    assert answers.keys() == DOCUMENTED
    assert record.number("writes") == WRITES == record.number("taken") + sum(answers.values())
    assert record.number("taken") > WRITES / 10
    assert min(answers.values()) > 0


def test_the_stress_reached_everything_it_aims_at(said: dict[str, Job]) -> None:
    (record,) = said["stress"].named("stress")
    for what in ("born", "execs", "reads", "writes", "refused", "migrations", "policies", "cgroup_moves"):
        assert record.number(what) > 50, record


def test_the_same_guest_says_the_same_twice(boot: Boot, patched_kernel: Path) -> None:
    first, second = (boot(patched_kernel, 2, REPEATED) for _ in range(2))
    assert first.exit_status == 0, first.console[-CONSOLE_TAIL:]
    assert first.console == second.console
