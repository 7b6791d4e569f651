"""`dasec status` shows what the daemon said of itself, and never mistakes the past for the present."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dasec.config.subject import Subject
from dasec.hosts.fake.fake import EXACT
from dasec.linux import procfs
from dasec.log import Announcer
from dasec.model import IDLE, Change, Knob, Knobs, Limits, Outcome, OwnLimit, Result, Shortfall
from dasec.record.entries import Entry
from dasec.reservations.grants import CpuClass
from dasec.reservations.keep import Kept, ReservationState
from dasec.safety.journal.directory import Directory
from dasec.service.status import INTERVAL_NS, STALE_NS, Absent, Status, complaints, read, render
from dasec.service.status_file import StatusFile

from .periods import STATE, busy_history

SUBJECT = Subject("dasec", 80, False, EXACT)


class Clock:
    """Stands still until told otherwise."""

    def __init__(self) -> None:
        self.now_ns = 5_000_000_000

    def __call__(self) -> int:
        return self.now_ns


def told(
    folder: Path, clock: Clock, entries: list[Entry], shortfall: Callable[[], Shortfall] = Shortfall
) -> StatusFile:
    """A status file that has heard these periods, the last one a second after the others."""
    file = StatusFile(folder, SUBJECT, Announcer(), clock, shortfall)
    for number, entry in enumerate(entries, start=1):
        if number == len(entries):
            clock.now_ns += INTERVAL_NS
        file.write(entry, STATE)
    return file


def with_results(*outcomes: tuple[Knob, Outcome]) -> list[Entry]:
    (entry,) = busy_history(1)
    vcpu = entry.period.workloads[0].vcpus[0].id
    results = tuple(Result(Change(vcpu, knob, 1, 2, f"{knob}.rule"), outcome) for knob, outcome in outcomes)
    return [entry._replace(results=results)]


def test_the_file_tells_workloads_changes_and_held_knobs(tmp_path: Path) -> None:
    clock = Clock()
    entries = with_results((Knob.WEIGHT, Outcome.APPLIED), (Knob.AFFINITY, Outcome.REJECTED))
    told(tmp_path, clock, entries)
    status = read(tmp_path, clock.now_ns)
    assert not isinstance(status, Absent)
    assert [workload["name"] for workload in status["workloads"]] == ["hungry", "calm"]
    assert status["knobs_held"] == {"weight": 1, "rescheduling_latency": 0, "affinity": 0, "cap": 0}
    assert status["changes_by_rule"] == {"weight.rule": 1}
    assert status["outcomes"] == {"applied": 1, "rejected": 1}
    assert status["mean_period_us"] == 0
    assert status["own_cpu_percent"] >= 0


def test_qemus_main_thread_is_counted_among_no_vcpus(tmp_path: Path) -> None:
    (entry,) = busy_history(1)
    first, *others = entry.period.workloads
    main = first.vcpus[0]._replace(emulator=True)
    domain = replace(first, vcpus=(*first.vcpus[1:], main))
    clock = Clock()
    told(tmp_path, clock, [entry._replace(period=replace(entry.period, workloads=(domain, *others)))])
    status = read(tmp_path, clock.now_ns)
    assert not isinstance(status, Absent)
    assert status["workloads"][0]["vcpus"] == len(first.vcpus) - 1


def test_a_knob_that_was_yielded_is_held_no_more(tmp_path: Path) -> None:
    clock = Clock()
    told(tmp_path, clock, with_results((Knob.WEIGHT, Outcome.APPLIED), (Knob.WEIGHT, Outcome.YIELDED)))
    status = read(tmp_path, clock.now_ns)
    assert not isinstance(status, Absent)
    assert status["knobs_held"]["weight"] == 0


def test_a_knob_that_is_not_ours_any_more_is_held_no_more(tmp_path: Path) -> None:
    clock = Clock()
    (entry,) = with_results((Knob.WEIGHT, Outcome.APPLIED))
    none = {vcpu: Knobs(None, None, None) for vcpu in entry.period.knobs}
    later = entry._replace(period=replace(entry.period, knobs=none), results=())
    told(tmp_path, clock, [entry, later])
    status = read(tmp_path, clock.now_ns)
    assert not isinstance(status, Absent)
    assert sum(status["knobs_held"].values()) == 0


def test_it_says_what_the_host_can_do_by_now(tmp_path: Path) -> None:
    clock = Clock()
    (entry,) = with_results((Knob.WEIGHT, Outcome.APPLIED))
    can = [EXACT, replace(EXACT, weight=False, weight_note="put out")]
    file = StatusFile(tmp_path, SUBJECT, Announcer(), clock, capabilities=lambda: can.pop(0))
    for weight, note in ((True, EXACT.weight_note), (False, "put out")):
        clock.now_ns += INTERVAL_NS
        file.write(entry, entry.decision.state)
        status = read(tmp_path, clock.now_ns)
        assert not isinstance(status, Absent)
        assert (status["capabilities"]["weight"], status["capabilities"]["weight_note"]) == (weight, note)


def test_it_is_written_once_a_second(tmp_path: Path) -> None:
    clock = Clock()
    file = StatusFile(tmp_path, SUBJECT, Announcer(), clock)
    file.write(busy_history(1)[0], STATE)
    assert list(tmp_path.iterdir()) == []


def test_the_text_for_people_has_a_line_for_each_workload(tmp_path: Path) -> None:
    clock = Clock()
    told(tmp_path, clock, busy_history(2))
    status = read(tmp_path, clock.now_ns)
    assert not isinstance(status, Absent)
    text = render(status)
    assert "workload hungry: 4 vCPUs, share 1024" in text
    assert "policy dasec on fake, process" in text


def short_of_room() -> Shortfall:
    return Shortfall({"hungry": 904, "gone": 7}, {"calm": 96}, lost=12, missed=3)


def test_what_is_left_out_for_want_of_room_is_said_of_each_workload_and_of_the_host(tmp_path: Path) -> None:
    clock = Clock()
    told(tmp_path, clock, busy_history(1), short_of_room)
    status = read(tmp_path, clock.now_ns)
    assert not isinstance(status, Absent)
    assert [(one["left_out"], one["unheard"]) for one in status["workloads"]] == [(904, 0), (0, 96)]
    assert (status["wakeups_lost"], status["wakeups_missed"]) == (12, 3)
    lines = render(status).splitlines()
    assert "workload hungry: 4 vCPUs, share 1024, 904 more threads left alone" in lines
    (calm,) = [line for line in lines if line.startswith("workload calm")]
    assert calm.endswith(", wake-ups of 96 not counted")
    assert "wake-ups not counted: 12 lost, 3 missed" in lines


def test_where_there_is_room_for_all_no_line_speaks_of_it(tmp_path: Path) -> None:
    clock = Clock()
    told(tmp_path, clock, busy_history(1))
    status = read(tmp_path, clock.now_ns)
    assert not isinstance(status, Absent)
    assert "left alone" not in render(status)
    assert "not counted" not in render(status)


@pytest.mark.parametrize(
    ("can_wait", "said"),
    [(True, "a look every 500 ms (budget 1 % of a core)"), (False, "(without a budget: this policy must")],
)
def test_it_says_how_often_it_looks_and_whether_a_budget_bounds_that(
    tmp_path: Path, *, can_wait: bool, said: str
) -> None:
    clock = Clock()
    told(
        tmp_path,
        clock,
        [one._replace(decision=replace(one.decision, can_wait=can_wait)) for one in busy_history(2)],
    )
    status = read(tmp_path, clock.now_ns)
    assert not isinstance(status, Absent)
    assert said in render(status)


def test_a_directory_that_is_full_or_gone_is_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    file = told(tmp_path / "gone", clock, busy_history(1))
    for entry in busy_history(3):
        clock.now_ns += INTERVAL_NS
        file.write(entry, STATE)
    assert len(caplog.messages) == 1
    assert "`dasec status` is blind" in caplog.messages[0]


def test_an_orderly_end_removes_the_file(tmp_path: Path) -> None:
    clock = Clock()
    told(tmp_path, clock, busy_history(1)).remove()
    assert isinstance(read(tmp_path, clock.now_ns), Absent)


@pytest.mark.parametrize("content", ["", "[]", "{}", "\xff", '{"pid": "x"}', '{"pid": 1e400}', "null"])
def test_what_is_no_status_file_is_one_line(tmp_path: Path, content: str) -> None:
    (tmp_path / "status.json").write_text(content, encoding="latin-1")
    absent = read(tmp_path, 0)
    assert isinstance(absent, Absent)
    assert "is not a status file" in absent.why


@pytest.mark.parametrize(
    ("put", "what"),
    [(os.mkdir, "Is a directory"), (os.mkfifo, "is not a file that can be read again")],
    ids=["a directory", "a pipe"],
)
def test_what_is_no_file_in_its_place_is_one_line_and_is_not_waited_for(
    tmp_path: Path, put: Callable[[Path], None], what: str
) -> None:
    put(tmp_path / "status.json")
    absent = read(tmp_path, 0)
    assert isinstance(absent, Absent)
    assert absent.why.endswith(f"{what}: remove it, or give the daemon's own directory")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda status: status.pop("troubles"),
        lambda status: status["workloads"][0].pop("reserved"),
        lambda status: status["capabilities"].pop("wake_edges_note"),
        lambda status: status.update(workloads=[1]),
        lambda status: status.update(capabilities=None),
    ],
    ids=["a key", "one of a workload", "one of the host", "no workloads", "no host"],
)
def test_what_a_daemon_of_another_version_says_is_one_line(
    tmp_path: Path, spoil: Callable[[dict[str, Any]], object]
) -> None:
    clock = Clock()
    told(tmp_path, clock, busy_history(1))
    status = json.loads((tmp_path / "status.json").read_text())
    spoil(status)
    (tmp_path / "status.json").write_text(json.dumps(status))
    absent = read(tmp_path, clock.now_ns)
    assert isinstance(absent, Absent)
    assert "is of another version" in absent.why


def test_a_daemon_that_is_gone_or_whose_id_another_process_has_does_not_run(tmp_path: Path) -> None:
    ticks = procfs.read_stat(os.getpid(), os.getpid()).start_ticks
    for pid, start in ((4194304, 1), (os.getpid(), ticks + 1)):
        (tmp_path / "status.json").write_text(json.dumps({"pid": pid, "start_ticks": start, "written_ns": 0}))
        absent = read(tmp_path, 0)
        assert isinstance(absent, Absent)
        assert "dasec restore" in absent.why


def test_a_daemon_that_says_nothing_any_more_is_told_apart(tmp_path: Path) -> None:
    clock = Clock()
    told(tmp_path, clock, busy_history(1))
    absent = read(tmp_path, clock.now_ns + STALE_NS + 1)
    assert isinstance(absent, Absent)
    assert "has said nothing for 5 s" in absent.why


def test_a_workload_with_a_limit_says_how_long_that_stopped_it_and_who_is_capped(tmp_path: Path) -> None:
    clock = Clock()
    (entry,) = busy_history(1)
    vcpus = [vcpu.id for vcpu in entry.period.workloads[0].vcpus]
    own = {vcpu: OwnLimit(300_000 * (at == 0), 0) for at, vcpu in enumerate(vcpus)}
    limits = {"hungry": Limits(1_500_000, 0, 700_000_000, own)}
    told(tmp_path, clock, [entry._replace(period=replace(entry.period, limits=limits))] * 2)
    status = read(tmp_path, clock.now_ns)
    assert not isinstance(status, Absent)
    hungry, calm = status["workloads"]
    assert (hungry["limit_ppm"], hungry["throttled_ms"], hungry["capped"]) == (1_500_000, 1400, 1)
    assert (calm["limit_ppm"], calm["throttled_ms"], calm["capped"]) == (0, 0, 0)
    assert ", limit 1.5 cores stopped threads for 1.4 s (used up by " in render(status)
    assert ", 1 vCPUs capped below it" in render(status)


def test_who_used_a_limit_up_whom_their_own_stopped_and_what_caps_spared_are_told(tmp_path: Path) -> None:
    clock = Clock()
    (entry,) = busy_history(1)
    vcpus = entry.period.workloads[0].vcpus
    usage = {vcpu.id: IDLE._replace(consumed_ns=entry.period.length_ns * 4 // 5) for vcpu in vcpus}
    own = {vcpu.id: OwnLimit(800_000, 600_000_000) for vcpu in vcpus}
    stopping = replace(entry.period, usage=usage, limits={"hungry": Limits(1_500_000, 0, 1, {})})
    capping = replace(entry.period, usage=usage, limits={"hungry": Limits(1_500_000, 0, 0, own)})
    told(tmp_path, clock, [entry._replace(period=period) for period in (stopping, capping, capping)])
    status = read(tmp_path, clock.now_ns)
    assert not isinstance(status, Absent)
    hungry, _ = status["workloads"]
    part = 100 // len(vcpus)
    assert list(map(tuple, hungry["used_up_by"])) == [(vcpu.name, part) for vcpu in vcpus]
    assert list(map(tuple, hungry["stopped_ms"])) == [(vcpu.name, 1200) for vcpu in vcpus]
    length_ns = entry.period.length_ns
    assert hungry["spared_ms"] == 2 * (length_ns - length_ns * 15 // (10 * len(vcpus))) // 1_000_000
    said = render(status)
    assert f"used up by {vcpus[0].name} {part} %" in said
    assert "without which it would have stopped all for 0.1 s" in said
    assert f"their own quotas stopped {vcpus[0].name} 1 s" in said


def test_reserved_cpus_are_shown_with_their_workload_and_as_a_map(tmp_path: Path) -> None:
    clock = Clock()
    (entry,) = busy_history(1)
    kept = Kept("hungry", 1500, CpuClass.EXCLUSIVE, (0,), ((1, 500),))
    state = ReservationState(entry.decision.state, (kept,))
    told(tmp_path, clock, [entry._replace(decision=replace(entry.decision, state=state))])
    status = read(tmp_path, clock.now_ns)
    assert not isinstance(status, Absent)
    assert status["workloads"][0]["reserved"] == "exclusive 0-1"
    assert [tuple(each) for each in status["cores"]] == [("0", "hungry"), ("1", "hungry 0.5")]
    assert "cores 1: hungry 0.5" in render(status)
    assert ", reserved exclusive 0-1" in render(status)


def test_what_is_in_order_has_no_complaint_and_each_thing_that_is_not_has_one(tmp_path: Path) -> None:
    clock = Clock()
    told(tmp_path, clock, busy_history(2))
    status = read(tmp_path, clock.now_ns)
    assert not isinstance(status, Absent)
    assert complaints(status) == ()
    first, *others = status["workloads"]
    first = {**first, "guard": "took 1.4 times as long: policy off here for 60 s"}
    ill: Status = {**status, "troubles": ["disk"], "violations": 2, "workloads": [first, *others]}
    assert complaints(ill) == (
        "trouble: disk",
        "guard: hungry: took 1.4 times as long: policy off here for 60 s",
        "2 violations of an invariant",
    )


def test_while_a_daemon_probes_the_host_status_does_not_call_it_gone(tmp_path: Path) -> None:
    place = Directory(tmp_path / "run")
    place.lock(0)
    try:
        found = read(tmp_path / "run", 0)
        assert isinstance(found, Absent)
        assert found.why.startswith("a daemon starts or ends: ")
    finally:
        place.close()
    found = read(tmp_path / "run", 0)
    assert isinstance(found, Absent)
    assert found.why.startswith("no daemon runs: ")


def test_a_daemon_that_was_given_another_directory_is_not_called_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    monkeypatch.setattr("dasec.service.status.elsewhere", lambda place: other if place == home else None)
    place = Directory(other)
    place.lock(0)
    try:
        found = read(home, 0)
        assert isinstance(found, Absent)
        assert found.why.endswith(f"ask it with `--directory {other}`")
    finally:
        place.close()
    found = read(home, 0)
    assert isinstance(found, Absent)
    assert found.why.startswith("no daemon runs: ")
