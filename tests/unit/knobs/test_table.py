"""The table of knobs: what each row promises, and that one more row is all that a new kind takes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dasec.knobs import knob, table
from dasec.knobs.groups import CGROUP, CONTROLLERS
from dasec.knobs.knob import GroupId, KnobRef, NativeKnob, NativeValue, Write, no_value
from dasec.knobs.nice import NICE
from dasec.knobs.quotas import QUOTA
from dasec.knobs.table import INHERITED, TABLE, named
from dasec.linux import procfs
from dasec.model import Core, Knob, KnobValue, VcpuId
from dasec.safety.journal.journal import Journal
from dasec.safety.restore import put_all_back

ME = VcpuId(os.getpid(), os.getpid(), procfs.read_stat(os.getpid(), os.getpid()).start_ticks)


class FileNumber(NativeKnob):
    """A kind that no kernel has: a number in a file."""

    serves = Knob.WEIGHT

    def read(self, ref: KnobRef, proc: str) -> NativeValue:
        return int(Path(ref.path).read_text())

    def write(self, ref: KnobRef, value: NativeValue, proc: str, descriptor: int | None = None) -> None:
        if not isinstance(value, int):
            raise no_value(self, value)
        Path(ref.path).write_text(str(value))


FILE_NUMBER = FileNumber("file_number")


@pytest.mark.parametrize("kind", TABLE, ids=str)
def test_a_journal_finds_each_kind_by_its_name(kind: NativeKnob) -> None:
    assert named(kind.name) is kind


VALUES: dict[Knob, KnobValue] = {
    Knob.WEIGHT: 2048,
    Knob.RESCHEDULING_LATENCY: 4_000_000,
    Knob.AFFINITY: frozenset({Core(0), Core(2)}),
}


@pytest.mark.parametrize("kind", [one for one in TABLE if one.serves in VALUES and one is not NICE], ids=str)
def test_a_value_of_the_model_comes_back_from_the_kernels_unit(kind: NativeKnob) -> None:
    assert kind.serves is not None
    assert kind.model(kind.native(VALUES[kind.serves])) == VALUES[kind.serves]


@pytest.mark.parametrize(
    ("weight", "nice"),
    [(1024, 0), (920, 0), (900, 1), (820, 1), (146, 9), (128, 9), (51, 13), (1, 19), (2048, -3), (8192, -9)],
)
def test_nice_takes_the_nearest_weight_within_an_eighth_as_far_as_it_reaches(weight: int, nice: int) -> None:
    assert NICE.native(weight) == nice
    found = NICE.model(nice)
    assert isinstance(found, int)
    assert nice == 19 or abs(found - weight) * 8 <= weight


@pytest.mark.parametrize(
    ("present", "expected"),
    [
        ("max 10000", True),  # on the way from our quota to another period
        ("max 100000", True),  # on the way to ours, or back
        ("2500 100000", True),  # our quota, in a period that somebody wrote at the same time
        ("max 50000", False),
        ("60000 100000", False),
    ],
)
def test_a_quota_of_v1_is_known_half_written(present: str, expected: bool) -> None:
    prior, ours = "40000 100000", ("2500 10000",)
    v1, v2 = (KnobRef(GroupId("/vm", 0), QUOTA, file) for file in ("cpu.cfs_quota_us", "cpu.max"))
    assert QUOTA.half_written(v1, prior, ours, present) is expected
    assert not QUOTA.half_written(v2, prior, ours, present)


@pytest.mark.parametrize("kind", [CGROUP, CONTROLLERS], ids=str)
def test_a_kind_without_a_place_in_the_model_takes_none(kind: NativeKnob) -> None:
    with pytest.raises(TypeError):
        kind.native(5)


@pytest.mark.parametrize("kind", TABLE, ids=str)
def test_a_value_of_another_kind_is_refused_and_nothing_written(kind: NativeKnob) -> None:
    wrong: NativeValue = 5 if kind.name in ("affinity", "cgroup", "quota", "controllers") else (1, 2)
    owner = GroupId("/nowhere", 0) if kind.of_group else ME
    with pytest.raises(OSError, match="is no value for"):
        kind.write(KnobRef(owner, kind, "at-all"), wrong, procfs.PROC)


def test_what_is_inherited_is_written_to_the_thread_itself() -> None:
    assert not any(kind.of_group for kind in INHERITED)


def test_a_new_kind_is_journalled_and_put_back_with_one_row_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "TABLE", (*TABLE, FILE_NUMBER))
    monkeypatch.setitem(table._BY_NAME, FILE_NUMBER.name, FILE_NUMBER)
    place = tmp_path / "number"
    place.write_text("3")
    ref = KnobRef(ME, FILE_NUMBER, str(place))
    journal, _ = Journal.open(tmp_path / "state")
    journal.begin([Write(ref, knob.read(ref), 7)])
    knob.write(ref, 7)
    journal.close()
    again, notices = Journal.open(tmp_path / "state")
    assert notices == ()
    assert put_all_back(again).put_back == 1
    assert (place.read_text(), again.outstanding()) == ("3", ())
    again.close()
