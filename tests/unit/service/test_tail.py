"""A record is read from its end: what is found there, and what is not believed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasec.commands.explain import explain
from dasec.log import Announcer
from dasec.model import NO_KNOBS, Change, Knob, Outcome, Result, VcpuId
from dasec.policies import Parameters
from dasec.record.entries import Entry
from dasec.record.file import WHOLE_BYTES, WHOLE_PART, RecordFile
from dasec.record.lines import WHOLE, Unreadable
from dasec.record.provenance import Ground, Grounds
from dasec.record.replay import replay
from dasec.record.tail import RecordTail, Seen

from .periods import STATE, busy_history, histories
from .recording import recorded, wrote


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
    file = RecordFile(tmp_path / "r", "none", Parameters(), Announcer(), max_bytes=1 << 30, files=1)
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
    last, grounds = end_of(path)
    period = entries[-1].period
    assert (last.line["period"], last.line["clock_ns"]) == (period.index, entries[-1].clock_ns)
    assert last.period.workloads == period.workloads
    expected = Grounds()
    for entry in entries:
        expected.note(entry)
    for vcpu in (vcpu.id for workload in period.workloads for vcpu in workload.vcpus):
        assert last.period.knobs.get(vcpu, NO_KNOBS) == period.knobs.get(vcpu, NO_KNOBS)
        for knob in Knob:
            assert [told(one) for one in grounds.of(vcpu, knob)] == [
                told(one) for one in expected.of(vcpu, knob)
            ]


def end_of(path: Path) -> tuple[Seen, Grounds]:
    grounds, seen = Grounds(), list(RecordTail(path).read())
    for one in seen:
        grounds.read(one.line, one.layout)
    return seen[-1], grounds


def told(ground: Ground | None) -> Ground | None:
    """Inputs are lists in JSON."""
    return ground and ground._replace(inputs=[(name, value) for name, value in ground.inputs])


@given(st.integers(0, 40))
def test_the_tail_follows_a_record_as_it_grows_and_turns_over(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    path = tmp_path_factory.mktemp("record") / "r"
    file = RecordFile(path, "none", Parameters(), Announcer(), max_bytes=8000, files=2)
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
    file = RecordFile(tmp_path / "r", "static", Parameters(), Announcer(), max_bytes=1 << 30, files=3)
    file.write(wrote(first, Knob.WEIGHT, 1126, "static.pin"), STATE)
    tail, grounds = RecordTail(tmp_path / "r"), Grounds()
    for seen in tail.read():
        grounds.read(seen.line, seen.layout)
    vcpu = first.period.workloads[0].vcpus[0].id
    assert grounds.of(vcpu, Knob.WEIGHT)[0] is not None
    file.turn("none", Parameters())
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
    from dasec.record.encode import Encoder

    encoder, header = Encoder.begin("none", Parameters(), STATE)
    lines = [encoder.line(entry) for entry in busy_history(5)]
    (tmp_path / "r").write_bytes(b"".join([header, *lines]))
    assert sum(1 for _ in RecordTail(tmp_path / "r").read()) == 5


def test_a_line_cut_short_is_left_out(tmp_path: Path) -> None:
    entries = recorded(tmp_path / "r", busy_history(5))
    content = (tmp_path / "r").read_bytes()
    (tmp_path / "r").write_bytes(content[:-40])
    assert end_of(tmp_path / "r")[0].line["period"] == entries[-2].period.index


def test_a_changed_line_is_seen_by_its_checksum(tmp_path: Path) -> None:
    recorded(tmp_path / "r", busy_history(5))
    content = (tmp_path / "r").read_bytes()
    at = content.rindex(b'"length_ns":8')
    (tmp_path / "r").write_bytes(content[:at] + b'"length_ns":9' + content[at + 13 :])
    with pytest.raises(Unreadable, match="a checksum is wrong"):
        list(RecordTail(tmp_path / "r").read())


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
