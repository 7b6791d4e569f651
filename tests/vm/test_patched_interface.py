"""What the patched kernel takes, refuses and forgets: bad input, rights, and the life of a thread."""

from __future__ import annotations

import pytest

from guests.counted import Job

pytestmark = pytest.mark.vm

BEFORE = {"weight": "1111", "granularity_ns": "222222"}
"""What each case of the job `refusals` starts from."""

TAKEN = {
    "accepted": ("1500", "70000"),
    "lowest-and-highest": ("262144", "1000000000"),
    "at-most-64-KiB": ("3000", BEFORE["granularity_ns"]),
    "nothing": (BEFORE["weight"], BEFORE["granularity_ns"]),
    "thread-file-accepted": ("900", "5"),
}
OUT_OF_RANGE = {
    "good-then-weight-too-small",
    "good-then-weight-too-large",
    "good-then-granularity-too-large",
    "good-then-number-of-30-digits",
}
NOT_IN_THIS_GROUP = {"good-then-stranger", "good-then-nobody", "good-then-thread-zero"}
TOO_LONG = {"more-than-64-KiB"}

MALFORMED_CASES = 17


def expected_errno(case: str) -> str:
    for cases, errno in ((OUT_OF_RANGE, "ERANGE"), (NOT_IN_THIS_GROUP, "ESRCH"), (TOO_LONG, "E2BIG")):
        if case in cases:
            return errno
    return "0" if case in TAKEN else "EINVAL"


def test_every_bad_input_has_its_errno(said: dict[str, Job]) -> None:
    got = {record["of"]: record["errno"] for record in said["refusals"].named("refusal")}
    assert got == {case: expected_errno(case) for case in got}
    assert TAKEN.keys() | OUT_OF_RANGE | NOT_IN_THIS_GROUP | TOO_LONG <= got.keys()
    assert list(got.values()).count("EINVAL") == MALFORMED_CASES


def test_a_refused_write_changes_nothing_and_a_good_one_everything_it_says(said: dict[str, Job]) -> None:
    for record in said["refusals"].named("refusal"):
        wanted = TAKEN.get(record["of"], tuple(BEFORE.values()))
        assert (record["weight"], record["granularity_ns"]) == wanted, record


def test_a_thread_of_another_process_is_left_alone(said: dict[str, Job]) -> None:
    (record,) = said["refusals"].named("stranger")
    assert record["weight"] == "-1"


def test_real_time_threads_are_refused(said: dict[str, Job]) -> None:
    *tries, left = said["refusals"].named("policy")
    assert {record["key"]: record["errno"] for record in tries} == {
        "weight": "EINVAL",
        "granularity_ns": "EINVAL",
    }
    assert left["left-weight"] == "-1"


def test_the_files_of_a_process_that_ended_say_so(said: dict[str, Job]) -> None:
    (record,) = said["refusals"].named("ended")
    assert (record["write"], record["read"], record["open"]) == ("ESRCH", "ESRCH", "ENOENT")


PERMISSIONS = {
    ("user", "self"): {"open-read": "0", "open-write": "0", "read": "0", "write": "EPERM"},
    ("user", "same-user"): {"open-read": "0", "open-write": "0", "read": "0", "write": "EPERM"},
    ("user", "same-user-hidden"): dict.fromkeys(("open-read", "open-write", "read", "write"), "EACCES"),
    ("user", "other-user"): dict.fromkeys(("open-read", "open-write", "read", "write"), "EACCES"),
    ("user", "root"): dict.fromkeys(("open-read", "open-write", "read", "write"), "EACCES"),
    ("dropped", "root"): {"read": "EACCES", "write": "EPERM"},
    ("deputy", "user"): {"write": "EPERM"},
    ("namespace-root", "self"): {"write": "0"},
    ("namespace-root", "same-user"): {"write": "EACCES"},
    ("namespace-root", "root"): {"write": "EACCES"},
    ("root", "self"): dict.fromkeys(("open-read", "open-write", "read", "write"), "0"),
    ("root", "user"): dict.fromkeys(("open-read", "open-write", "read", "write"), "0"),
}
"""Who tries what with whose file. Reading needs ptrace access, writing CAP_SYS_NICE over the owner."""


@pytest.mark.parametrize(("who", "whose"), PERMISSIONS)
def test_only_those_with_the_right_read_and_write(said: dict[str, Job], who: str, whose: str) -> None:
    tries = said["permissions"].named("permission")
    got = {
        record["what"]: record["errno"]
        for record in tries
        if (record["who"], record["whose"]) == (who, whose)
    }
    assert got == PERMISSIONS[who, whose]


def test_those_without_the_right_leave_no_trace(said: dict[str, Job]) -> None:
    weights = {record["weight"] for record in said["permissions"].named("untouched")}
    assert weights == {"-1"}


DEFAULT, SET = ("-1", "-1"), ("2048", "300000")
LIFE = {
    "start": DEFAULT,
    "write": SET,
    "fork": DEFAULT,
    "thread": DEFAULT,
    "exec": SET,
    "nice": ("-1", "300000"),
    "weight-after-nice": ("500", "300000"),
    "same-nice": ("-1", "300000"),
    "real-time": ("-1", "300000"),  # the policy decides about the weight, as nice does
    "ordinary-again": ("-1", "300000"),
    "default": DEFAULT,
}


@pytest.mark.parametrize("after", LIFE)
def test_knobs_survive_what_they_should(said: dict[str, Job], after: str) -> None:
    (record,) = (record for record in said["lifecycle"].named("life") if record["after"] == after)
    assert (record["weight"], record["granularity_ns"]) == LIFE[after]


@pytest.mark.parametrize("born", ["fork", "thread"])
def test_what_is_born_has_been_woken_by_nobody(said: dict[str, Job], born: str) -> None:
    (record,) = (record for record in said["lifecycle"].named("life") if record["after"] == born)
    assert (record["wakeups"], record["wakers"]) == ("0", "-")
