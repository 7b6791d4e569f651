"""What is read from the console of a counted guest."""

from __future__ import annotations

import pytest

from guests.counted import parse

CONSOLE = """[    0.000000] something of the kernel's own = not a record
GUEST-JOB:shares
shares first=1024 second=2048
[    1.234567] and a line from the kernel
GUEST-END:0
GUEST-TAINT:0
GUEST-JOB:fuzz
GUEST-LOG:WARNING: CPU: 0 PID: 1 at kernel/sched/core.c:1
GUEST-LOG:Call Trace:
"""


def test_each_job_has_its_records_and_its_end() -> None:
    job = parse(CONSOLE)["shares"]
    (record,) = job.named("shares")
    assert record.number("second") == 2048
    assert (job.exit_status, job.tainted, job.complaints) == (0, 0, ())


def test_a_job_that_never_ended_and_what_the_kernel_said_are_seen() -> None:
    job = parse(CONSOLE)["fuzz"]
    assert (job.exit_status, job.tainted) == (None, None)
    assert job.complaints == ("WARNING: CPU: 0 PID: 1 at kernel/sched/core.c:1", "Call Trace:")


def test_a_job_that_said_nothing_of_a_kind_is_an_error_and_not_a_success() -> None:
    with pytest.raises(AssertionError, match="no line 'fuzz'"):
        parse(CONSOLE)["fuzz"].named("fuzz")
