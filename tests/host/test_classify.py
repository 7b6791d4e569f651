"""`dasec classify` runs a real command under a real limit, and leaves no group."""

from __future__ import annotations

import json
import os

import pytest

from dasec.errors import ExitStatus
from dasec.linux import cgroupfs
from dasec.safety.groups import abandoned_probes
from tests.conftest import refuse
from tests.unit.service.command import dasec

pytestmark = pytest.mark.host

SIZED_BY_WHAT_IT_SEES = "sleep $(echo $(nproc) 0.3 | awk '{print $1 * $2}')"


@pytest.fixture(autouse=True)
def two_cpus() -> None:
    if len(os.sched_getaffinity(0)) < 2:
        refuse("needs two CPUs")


@pytest.mark.timing
def test_a_program_that_sizes_itself_by_the_cpus_in_sight_wants_cpus_of_its_own() -> None:
    answer = dasec("classify", "--json", "--pairs", "6", "--cpus", "1", "sh", "-c", SIZED_BY_WHAT_IT_SEES)
    assert answer.status == ExitStatus.DONE, answer.errors
    told = json.loads(answer.out)
    assert told["class"] == "exclusive"
    (trial,) = told["trials"]
    assert len(trial["quota_s"]) == len(trial["cpuset_s"]) == 6
    assert list(abandoned_probes(cgroupfs.find_hierarchy())) == []


def test_a_command_that_fails_ends_it_with_one_line_and_what_it_left_running_ends_too() -> None:
    answer = dasec("classify", "--cpus", "1", "sh", "-c", "sleep 300 & exit 7")
    assert answer.status == ExitStatus.FAILED
    (line,) = answer.errors
    assert "ended with status 7: give a command that does its work" in line
    assert list(abandoned_probes(cgroupfs.find_hierarchy())) == []
