"""Who woke whom, states and times of the patched kernel: planted events must come out exactly."""

from __future__ import annotations

import pytest

from guests.counted import Job

pytestmark = pytest.mark.vm

TABLE = 32
"""Entries of the waker table: SCHED_DASEC_NR_WAKERS."""


def test_wake_ups_by_siblings_are_counted_for_each_of_them(said: dict[str, Job]) -> None:
    siblings = [record for record in said["wakes"].named("wakes") if record["by"] == "sibling"]
    assert [record.number("planted") for record in siblings] == [300, 200]
    for record in siblings:
        assert record.number("wakeups") == record.number("waker") == record.number("planted"), record
        assert record.number("external") == record.number("other") == 0, record


def test_wake_ups_by_another_process_are_external(said: dict[str, Job]) -> None:
    (record,) = (record for record in said["wakes"].named("wakes") if record["by"] == "process")
    assert record.number("wakeups") == record.number("external") == record.number("planted"), record
    assert record.number("timers") == 0, record


def test_wake_ups_by_timers_are_external(said: dict[str, Job]) -> None:
    (record,) = (record for record in said["wakes"].named("wakes") if record["by"] == "timer")
    assert record.number("external") == record.number("timers") == record.number("planted"), record
    assert record.number("waker") == 1, "the main thread sent it off once"
    assert record.number("wakeups") == record.number("planted") + 1, record


def test_siblings_beyond_the_table_are_counted_together(said: dict[str, Job]) -> None:
    (record,) = said["wakes"].named("crowd")
    siblings, each = record.number("siblings"), record.number("each")
    assert record.number("entries") == TABLE
    assert record.number("listed") == TABLE * each
    assert record.number("other") == (siblings - TABLE) * each
    assert record.number("wakeups") == siblings * each
    assert record.number("external") == 0


def test_the_counts_of_wakers_that_ended_are_kept_together(said: dict[str, Job]) -> None:
    (crowd,), (ended,) = said["wakes"].named("crowd"), said["wakes"].named("ended")
    assert ended.number("entries") == 0
    assert ended.number("other") == ended.number("wakeups") == crowd.number("wakeups")


def test_a_thread_id_that_is_used_again_inherits_no_counts(said: dict[str, Job]) -> None:
    first, *again = said["wakes"].named("reused")
    assert first.number("counted") == 7
    assert again, "the id did not come round"
    assert {record.number("counted") for record in again} == {0}


def test_running_queued_and_sleeping_threads_are_told_apart(said: dict[str, Job]) -> None:
    elsewhere, here = said["states"].named("states")
    assert [elsewhere[who] for who in ("self", "hog", "asleep")] == ["R", "R", "S"]
    assert [here[who] for who in ("self", "hog", "asleep")] == ["R", "Q", "S"]


def test_a_queued_thread_gains_ready_time_before_it_runs_again(said: dict[str, Job]) -> None:
    (record,) = said["states"].named("queued")
    assert record.number("held_ns") <= record.number("ready_ns") < 1.1 * record.number("held_ns"), record
    assert record.number("run_ns") == 0, record


def test_run_time_of_a_running_thread_is_exact_to_the_moment(said: dict[str, Job]) -> None:
    for record in said["states"].named("exact"):
        assert record.number("low_ns") <= record.number("run_ns") <= record.number("high_ns"), record


def test_context_switches_are_those_of_the_status_file(said: dict[str, Job]) -> None:
    for record in said["states"].named("switches"):
        assert record["voluntary"] == record["status_voluntary"], record
        assert record["involuntary"] == record["status_involuntary"], record


def test_the_file_of_a_process_has_a_line_for_each_thread(said: dict[str, Job]) -> None:
    (record,) = said["states"].named("group")
    assert record["rows"] == record["threads"]
