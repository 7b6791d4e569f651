"""`dasec explain` says why each knob is what it is, however long ago it was written."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasec.entry import plain_explain
from dasec.exits import ExitStatus, Refusal
from dasec.explain import APPLIED, KNOBS, Story, VcpuStory, explain, plain, record_of, render
from dasec.grounds import IN_FORCE, Ground, Grounds
from dasec.hosts.fake import EXACT
from dasec.log import Announcer
from dasec.model import (
    NO_KNOBS,
    Change,
    Decision,
    Knob,
    Knobs,
    KnobValue,
    Outcome,
    Reason,
    Result,
    VcpuId,
)
from dasec.policy import POLICIES
from dasec.record import Entry
from dasec.recordend import IN_FORCE as IN_FORCE_IN_LINES
from dasec.recordend import End, Write, end_of
from dasec.recordfile import WHOLE_BYTES, WHOLE_PART, RecordFile
from dasec.recordlines import WHOLE, Unreadable
from dasec.recordtail import RecordTail
from dasec.replay import replay
from dasec.ruletext import RULES
from dasec.status import INTERVAL_NS
from dasec.statuswriter import StatusFile, Subject

from .command import REPOSITORY, dasec
from .periods import STATE, busy_history, histories

DECIDING = ("tsa", "rla", "rcr", "critical", "guard", "baselines")
RULE = re.compile(rf'"((?:tsa|rla|rcr|guard|{"|".join(POLICIES)})\.[a-z]+)"')


def recorded(
    path: Path, entries: Sequence[Entry], max_bytes: int = 1 << 30, policy: str = "none"
) -> list[Entry]:
    file = RecordFile(path, policy, {}, Announcer(), max_bytes=max_bytes, files=3)
    for entry in entries:
        file.write(entry, STATE)
    file.close()
    return list(entries)


def wrote(
    entry: Entry, knob: Knob, new: int, rule: str, outcome: Outcome = Outcome.APPLIED, detail: str = ""
) -> Entry:
    """The same period, but the first vCPU of `hungry` got a new value of a knob at its end."""
    vcpu = entry.period.workloads[0].vcpus[0].id
    result = Result(Change(vcpu, knob, 1024, new, rule), outcome, detail)
    reason = Reason(vcpu, knob, rule, (("consumed_ns", 80_000_000), ("cores", 2)))
    return entry._replace(results=(result,), decision=Decision({}, (reason,), STATE))


def holding(entry: Entry, weight: int | None) -> Entry:
    """The same period, but the first vCPU of `hungry` has that weight in it."""
    vcpu = entry.period.workloads[0].vcpus[0].id
    knobs = {**entry.period.knobs, vcpu: entry.period.knobs[vcpu]._replace(weight=weight)}
    return entry._replace(period=replace(entry.period, knobs=knobs))


def test_a_knob_is_explained_by_its_last_write_and_what_the_rule_saw(tmp_path: Path) -> None:
    first, *rest = busy_history(10)
    recorded(
        tmp_path / "r", [wrote(first, Knob.WEIGHT, 1126, "tsa.raise"), *(holding(e, 1126) for e in rest)]
    )
    weight, latency, affinity = explain(tmp_path / "r", "hungry", None)["vcpus"][0]["knobs"]
    assert weight["value"] == 1126
    assert weight["written"] == {
        "rule": "tsa.raise",
        "inputs": [("consumed_ns", 80_000_000), ("cores", 2)],
        "prior": 1024,
        "new": 1126,
        "outcome": "applied",
        "detail": "",
        "period": 0,
        "seconds_ago": 0.72,
    }
    assert (latency["value"], latency["written"]) == (4_000_000, None)
    assert (affinity["value"], affinity["written"]) == ("0-1", None)


def test_a_write_of_the_last_period_is_already_its_value(tmp_path: Path) -> None:
    *before, last = busy_history(3)
    recorded(tmp_path / "r", [*before, wrote(last, Knob.WEIGHT, 1126, "tsa.raise")])
    assert explain(tmp_path / "r", "hungry", None)["vcpus"][0]["knobs"][0]["value"] == 1126


def test_a_write_that_lies_many_whole_lines_and_files_back_is_still_known(tmp_path: Path) -> None:
    first, *rest = busy_history(8000)
    recorded(tmp_path / "r", [wrote(first, Knob.WEIGHT, 1126, "tsa.raise"), *rest], max_bytes=3 << 20)
    assert (tmp_path / "r.1").exists()
    written = explain(tmp_path / "r", "hungry", None)["vcpus"][0]["knobs"][0]["written"]
    assert written is not None
    assert (written["rule"], written["period"]) == ("tsa.raise", 0)


def test_little_of_a_long_record_is_read_and_all_of_it_replays(tmp_path: Path) -> None:
    recorded(tmp_path / "r", busy_history(8000))
    size = (tmp_path / "r").stat().st_size
    assert size > 3 * WHOLE_BYTES
    read = sum(1 for _ in RecordTail(tmp_path / "r").read())
    assert read / 8000 <= (WHOLE_BYTES + 10_000) / size
    assert size // WHOLE_BYTES * 0.9 <= (tmp_path / "r").read_bytes().count(WHOLE) <= size // WHOLE_BYTES + 1


def test_whole_lines_are_a_small_part_of_the_record_of_many_vcpus(tmp_path: Path) -> None:
    (entry,) = busy_history(1)
    first, _ = entry.period.workloads
    vcpus = tuple(first.vcpus[0]._replace(id=VcpuId(1, tid, 1)) for tid in range(1, 1000))
    many = replace(entry.period, workloads=(replace(first, vcpus=vcpus),), usage={}, knobs={}, core_of={})
    changes = tuple(
        Result(Change(vcpu.id, Knob.WEIGHT, 1024, 1126, "tsa.raise"), Outcome.APPLIED) for vcpu in vcpus
    )
    recorded(tmp_path / "r", [entry._replace(period=many, results=changes)] * 100)
    lines = (tmp_path / "r").read_bytes().splitlines()
    whole = sum(len(line) for line in lines if WHOLE in line)
    assert whole <= sum(map(len, lines)) / WHOLE_PART * 1.5


def test_a_record_with_whole_lines_in_it_replays(tmp_path: Path) -> None:
    from pydantic_core import to_jsonable_python

    from dasec.policy import Parameters

    file = RecordFile(
        tmp_path / "r", "none", to_jsonable_python(Parameters()), Announcer(), max_bytes=1 << 30, files=1
    )
    for entry in busy_history(4000):
        file.write(entry, STATE)
    file.close()
    assert (tmp_path / "r").read_bytes().count(WHOLE) > 1
    assert replay(tmp_path / "r").periods == 4000


@given(histories())
def test_the_end_of_any_record_gives_the_period_that_was_written(
    tmp_path_factory: pytest.TempPathFactory, entries: list[Entry]
) -> None:
    path = tmp_path_factory.mktemp("record") / "r"
    recorded(path, entries)
    end = last_of(path)
    period = entries[-1].period
    assert (end.period, end.clock_ns) == (period.index, entries[-1].clock_ns)
    assert set(end.workloads) == {workload.name for workload in period.workloads}
    expected = Grounds()
    for entry in entries:
        expected.note(entry)
    for vcpu in (vcpu.id for workload in period.workloads for vcpu in workload.vcpus):
        knobs = period.knobs.get(vcpu, NO_KNOBS)
        for number, knob in enumerate(Knob):
            assert in_words(end.knobs(vcpu)[number]) == in_words(knobs[number])
            told = end.of(vcpu, knob.value)
            assert [told_by(one) for one in told] == [meant_by(one) for one in expected.of(vcpu, knob)]


def last_of(path: Path) -> End:
    end = end_of(str(path))
    assert end is not None
    return end


def in_words(value: KnobValue | Sequence[int] | None) -> int | str | None:
    return None if value is None else plain(sorted(value) if isinstance(value, frozenset) else value)


def told_by(write: Write | None) -> list[object] | None:
    if write is None:
        return None
    inputs = [tuple(each) for each in write.inputs]
    return [in_words(write.prior), in_words(write.new), inputs, *write[2:5], *write[6:]]


def meant_by(ground: Ground | None) -> list[object] | None:
    if ground is None:
        return None
    (_, _, prior, new, rule), outcome, detail = ground.result
    values = [in_words(prior), in_words(new), list(ground.inputs)]
    return [*values, rule, outcome, detail, ground.period, ground.clock_ns]


def test_the_words_of_a_line_are_those_of_the_daemon() -> None:
    assert tuple(map(str, IN_FORCE)) == IN_FORCE_IN_LINES
    assert (tuple(Knob), Outcome.APPLIED) == (KNOBS, APPLIED)


@given(st.integers(0, 40))
def test_the_tail_follows_a_record_as_it_grows_and_turns_over(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    path = tmp_path_factory.mktemp("record") / "r"
    file = RecordFile(path, "none", {}, Announcer(), max_bytes=8000, files=2)
    tail = RecordTail(path)
    entries = busy_history(41)
    for entry in entries[: cut + 1]:
        file.write(entry, STATE)
    assert [seen.period for seen in tail.read()][-1] == entries[cut].period
    for entry in entries[cut + 1 :]:
        file.write(entry, STATE)
        assert [seen.period for seen in tail.read()][-1] == entry.period
    assert list(tail.read()) == []
    file.close()


def test_the_tail_waits_while_a_record_is_being_turned_over(tmp_path: Path) -> None:
    recorded(tmp_path / "r", busy_history(3))
    tail = RecordTail(tmp_path / "r")
    assert sum(1 for _ in tail.read()) == 3
    (tmp_path / "r").rename(tmp_path / "r.1")
    assert list(tail.read()) == []
    recorded(tmp_path / "r", busy_history(2))
    assert sum(1 for _ in tail.read()) == 2


def test_what_a_former_policy_wrote_explains_nothing_after_it_was_put_back(tmp_path: Path) -> None:
    first, *later = busy_history(4)
    file = RecordFile(tmp_path / "r", "static", {}, Announcer(), max_bytes=1 << 30, files=3)
    file.write(wrote(first, Knob.WEIGHT, 1126, "static.pin"), STATE)
    tail, grounds = RecordTail(tmp_path / "r"), Grounds()
    for seen in tail.read():
        grounds.read(seen.line, seen.layout)
    vcpu = first.period.workloads[0].vcpus[0].id
    assert grounds.of(vcpu, Knob.WEIGHT)[0] is not None
    file.turn("none", {})
    for entry in later:
        file.write(entry, STATE)
    file.close()
    for seen in tail.read():
        grounds.read(seen.line, seen.layout)
    assert grounds.of(vcpu, Knob.WEIGHT) == (None, None)
    assert (
        explain(tmp_path / "r", first.period.workloads[0].name, None)["vcpus"][0]["knobs"][0]["written"]
        is None
    )


def test_a_record_of_an_older_version_is_read_from_its_header(tmp_path: Path) -> None:
    from dasec.encoder import Encoder

    encoder, header = Encoder.begin("none", {}, STATE)
    lines = [encoder.line(entry) for entry in busy_history(5)]
    (tmp_path / "r").write_bytes(b"".join([header, *lines]))
    assert sum(1 for _ in RecordTail(tmp_path / "r").read()) == 5


def test_a_line_cut_short_is_left_out(tmp_path: Path) -> None:
    entries = recorded(tmp_path / "r", busy_history(5))
    content = (tmp_path / "r").read_bytes()
    (tmp_path / "r").write_bytes(content[:-40])
    assert last_of(tmp_path / "r").period == entries[-2].period.index


def test_a_changed_line_is_seen_by_its_checksum(tmp_path: Path) -> None:
    recorded(tmp_path / "r", busy_history(5))
    content = (tmp_path / "r").read_bytes()
    at = content.rindex(b'"length_ns":8')
    (tmp_path / "r").write_bytes(content[:at] + b'"length_ns":9' + content[at + 13 :])
    with pytest.raises(Unreadable, match="a checksum is wrong"):
        list(RecordTail(tmp_path / "r").read())


def test_a_person_reads_value_time_rule_and_numbers(tmp_path: Path) -> None:
    first, *rest = busy_history(10)
    recorded(
        tmp_path / "r", [wrote(first, Knob.WEIGHT, 1126, "tsa.raise"), *(holding(e, 1126) for e in rest)]
    )
    text = render(explain(tmp_path / "r", "hungry", None)).splitlines()
    assert text[1:6] == [
        "v100 (thread 100)",
        "  weight               1126",
        "                       written 0.7 s ago: 1024 -> 1126: it used up its slice and still wanted to"
        " run, so its part of the workload grows (tsa.raise)",
        "                       it saw consumed 80 ms, cores 2",
        "  rescheduling latency 4 ms, as found: nothing was written",
    ]


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (512, "we wrote 1126: somebody else has changed it since"),
        (None, "not ours: this host has no such knob for it"),
    ],
)
def test_a_knob_that_somebody_else_has_now_is_said_to_be_so(
    tmp_path: Path, after: int | None, expected: str
) -> None:
    first, second = busy_history(2)
    recorded(tmp_path / "r", [wrote(first, Knob.WEIGHT, 1126, "tsa.raise"), holding(second, after)])
    assert expected in render(explain(tmp_path / "r", "hungry", None))


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Outcome.REJECTED, "rejected 0.1 s ago (no keeper yet)"),
        (Outcome.DRY_RUN, "dry run, would be written 0.1 s ago"),
    ],
)
def test_a_write_that_failed_or_was_a_dry_run_is_told_apart(
    tmp_path: Path, outcome: Outcome, expected: str
) -> None:
    first, second = busy_history(2)
    tried = wrote(first, Knob.WEIGHT, 1126, "tsa.raise", outcome, "no keeper yet")
    recorded(tmp_path / "r", [tried, second])
    assert expected in render(explain(tmp_path / "r", "hungry", None))


def test_a_workload_of_which_nothing_was_written_is_said_so(tmp_path: Path) -> None:
    recorded(tmp_path / "r", busy_history(2))
    assert "nothing was written for it so far" in render(explain(tmp_path / "r", "calm", None))


def test_an_unknown_workload_is_one_line_with_the_nearest_name(tmp_path: Path) -> None:
    recorded(tmp_path / "r", busy_history(2))
    answer = dasec("explain", "hungri", "--record", tmp_path / "r")
    assert answer.status == ExitStatus.FAILED
    assert answer.errors == [
        f"dasec: no workload 'hungri' in the last period of the record {tmp_path / 'r'}:"
        " did you mean `hungry`?"
    ]


def test_a_thread_that_calls_itself_an_escape_code_does_nothing_to_the_terminal() -> None:
    story = Story(
        workload="a",
        share=1024,
        record="r",
        period=1,
        guard="",
        vcpus=[VcpuStory(vcpu="\x1b[2J\nweb\udcff", tid=7, knobs=[])],
    )
    assert render(story).splitlines()[-1] == "�[2J�web� (thread 7)"


def test_json_is_what_a_program_reads(tmp_path: Path) -> None:
    recorded(tmp_path / "r", busy_history(2))
    answer = dasec("explain", "calm", "--record", tmp_path / "r", "--json")
    assert [vcpu["tid"] for vcpu in json.loads(answer.out)["vcpus"]] == [200, 201, 202, 203]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "No such file or directory: give a readable record"),
        (b"root:x:0:0\n", "is not a DASEC record: give a file that `dasec run --record` wrote"),
        (b"", "holds no period yet: try again in a second"),
    ],
)
def test_a_file_that_tells_nothing_is_one_line(tmp_path: Path, content: bytes | None, expected: str) -> None:
    if content is not None:
        (tmp_path / "r").write_bytes(content)
    with pytest.raises(Refusal, match=re.escape(f"{tmp_path / 'r'}: {expected}")):
        explain(tmp_path / "r", "hungry", None)


def test_without_a_daemon_or_without_its_record_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="or name a record with --record FILE"):
        record_of(tmp_path, 0)
    told_status(tmp_path, None)
    with pytest.raises(Refusal, match="the daemon keeps no record: start it with"):
        record_of(tmp_path, INTERVAL_NS)


def test_the_running_daemons_record_is_found_by_its_status(tmp_path: Path) -> None:
    recorded(tmp_path / "r", busy_history(2))
    told_status(tmp_path, tmp_path / "r")
    path, status = record_of(tmp_path, INTERVAL_NS)
    assert explain(path, "calm", status)["guard"] == ""


def told_status(folder: Path, record: Path | None) -> None:
    now_ns = 0
    file = StatusFile(folder, Subject("dasec", 80, False, EXACT, record=record), Announcer(), lambda: now_ns)
    now_ns = INTERVAL_NS
    file.write(busy_history(1)[0], STATE)


def test_a_failed_write_is_forgotten_when_a_later_one_succeeds() -> None:
    (entry,) = busy_history(1)
    grounds = Grounds()
    grounds.note(wrote(entry, Knob.WEIGHT, 1126, "tsa.raise", Outcome.REJECTED))
    grounds.note(wrote(entry, Knob.WEIGHT, 1238, "tsa.raise"))
    in_force, failed = grounds.of(entry.period.workloads[0].vcpus[0].id, Knob.WEIGHT)
    assert (in_force and in_force.result.change.new, failed) == (1238, None)


def test_threads_that_are_gone_take_no_room_in_the_record() -> None:
    (entry,) = busy_history(1)
    grounds = Grounds()
    grounds.note(wrote(entry, Knob.WEIGHT, 1126, "tsa.raise"))
    assert len(grounds.rows(entry.period)) == 1
    assert grounds.rows(replace(entry.period, workloads=entry.period.workloads[1:])) == []


def test_every_rule_has_a_meaning() -> None:
    used = {
        rule
        for folder in DECIDING
        for path in (REPOSITORY / "daemon" / folder).rglob("*.py")
        for rule in RULE.findall(path.read_text(encoding="utf-8"))
    }
    assert used == set(RULES)


def test_none_of_the_knobs_is_ours_where_the_host_says_so(tmp_path: Path) -> None:
    (entry,) = busy_history(1)
    none = {vcpu: Knobs(None, None, None) for vcpu in entry.period.knobs}
    recorded(tmp_path / "r", [entry._replace(period=replace(entry.period, knobs=none))])
    knobs = explain(tmp_path / "r", "calm", None)["vcpus"][0]["knobs"]
    assert [knob["value"] for knob in knobs] == [None] * 3


@pytest.mark.parametrize(
    ("arguments", "plain"),
    [
        (["explain", "web"], ("web", None, False)),
        (["explain", "--json", "web", "--record", "r"], ("web", "r", True)),
        (["explain"], None),
        (["explain", "--help"], None),
        (["explain", "--record", "r"], None),
        (["explain", "web", "--record"], None),
        (["explain", "web", "db"], None),
        (["explain", "web", "--json", "--json"], None),
        (["explain", "--", "web"], None),
        (["explain", "web", "--directory", "/run/x"], None),
        (["top"], None),
        ([], None),
    ],
)
def test_only_a_plain_call_is_answered_without_click(
    arguments: list[str], plain: tuple[str, str | None, bool] | None
) -> None:
    assert plain_explain(arguments) == plain


@pytest.mark.parametrize("workload", ["hungry", "hungri"])
@pytest.mark.parametrize("way", [[], ["--json"]])
def test_a_plain_call_and_one_through_click_answer_the_same(
    tmp_path: Path, workload: str, way: list[str]
) -> None:
    first, *rest = busy_history(10)
    recorded(
        tmp_path / "r", [wrote(first, Knob.WEIGHT, 1126, "tsa.raise"), *(holding(e, 1126) for e in rest)]
    )
    plainly = dasec("explain", workload, "--record", tmp_path / "r", *way)
    assert dasec("explain", workload, "--record", tmp_path / "r", "--directory", tmp_path, *way) == plainly


def test_a_plain_call_whose_reader_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    recorded(tmp_path / "r", busy_history(2))
    command = f"{sys.executable} -m dasec explain hungry --record {tmp_path / 'r'} | true"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""


HEAVY = {"click", "dataclasses", "inspect", "pydantic", "pydantic_core", "rich", "dasec.model", "dasec.cli"}


@pytest.mark.parametrize("said", [False, True])
def test_a_plain_call_loads_nothing_that_takes_long(tmp_path: Path, said: bool) -> None:
    recorded(tmp_path / "r", busy_history(2))
    told_status(tmp_path, tmp_path / "r")
    record = None if said else str(tmp_path / "r")
    program = (
        f"import sys; before = set(sys.modules); from dasec.explain import answer\n"
        f"answer('calm', {record!r}, {str(tmp_path)!r}, {INTERVAL_NS}, as_json=True)\n"
        f"import dasec.entry; print(*set(sys.modules) - before)"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not HEAVY & set(loaded.stdout.split())
