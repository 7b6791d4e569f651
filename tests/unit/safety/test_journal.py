"""What the journal remembers, for how long, and how much."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from dasec.knobs.knob import Write
from dasec.safety.journal import journal as journal_module
from dasec.safety.journal.directory import JournalBusy
from dasec.safety.journal.journal import Journal, peek

from .knobs_for_tests import group_of, held, mask_of, open_journal, reopen, slice_of, weight_of


def test_a_new_journal_holds_nothing(journal: Journal) -> None:
    assert journal.outstanding() == ()
    assert journal.groups() == ()


def test_the_first_prior_stays_and_the_last_two_values_of_ours_count(journal: Journal, place: Path) -> None:
    for new in (1126, 1239, 1363):
        journal.begin([Write(weight_of(1), 1024, new)])
    again, notices = reopen(journal, place)
    assert notices == ()
    assert held(again) == {weight_of(1): (1024, (1239, 1363))}
    again.close()


def test_of_a_batch_that_writes_a_knob_several_times_every_value_counts(journal: Journal) -> None:
    journal.begin([Write(slice_of(1), 0, 4)])
    journal.begin([Write(slice_of(1), 0, 5), Write(slice_of(2), 0, 9), Write(slice_of(1), 0, 6)])
    assert held(journal) == {slice_of(1): (0, (4, 5, 6)), slice_of(2): (0, (9,))}


def test_writing_the_same_value_again_and_being_refused_loses_nothing(journal: Journal) -> None:
    for new in (4, 5, 5):
        journal.begin([Write(slice_of(1), 0, new)])
    journal.rejected([slice_of(1)])
    assert held(journal)[slice_of(1)] == (0, (5,))


def test_where_one_of_several_writes_to_a_knob_was_refused_all_of_them_count(journal: Journal) -> None:
    journal.begin([Write(slice_of(1), 0, 4)])
    journal.begin([Write(slice_of(1), 0, 5), Write(slice_of(1), 0, 6)])
    journal.rejected([slice_of(1)])
    journal.begin([Write(slice_of(1), 0, 7)])
    assert held(journal)[slice_of(1)] == (0, (4, 5, 6, 7))


def test_a_refused_value_does_not_push_out_what_the_kernel_holds(journal: Journal, place: Path) -> None:
    journal.begin([Write(slice_of(1), 0, 4)])
    for refused in (5, 6, 7):
        journal.begin([Write(slice_of(1), 0, refused)])
        journal.rejected([slice_of(1), slice_of(2)])
    journal.begin([Write(slice_of(1), 0, 8)])
    again, _ = reopen(journal, place)
    assert held(again) == {slice_of(1): (0, (4, 8))}
    again.close()


def test_every_kind_of_value_survives(journal: Journal, place: Path) -> None:
    big = (*range(8192), 9000, 9002)
    strange = '/vm "a"\n\udcff/é:x'
    journal.begin(
        [
            Write(mask_of(1), big, (0,)),
            Write(mask_of(2), (), (7, 9)),
            Write(group_of(1), strange, f"{strange}/dasec-1"),
            Write(weight_of(1, strange), 2, 262_144),
            Write(slice_of(1), 0, 10**18),
        ]
    )
    journal.group_made(f"/cg{strange}/dasec-1")
    before, groups = journal.outstanding(), journal.groups()
    again, notices = reopen(journal, place)
    assert notices == ()
    assert (again.outstanding(), again.groups()) == (before, groups)
    again.close()


def test_what_is_settled_is_forgotten(journal: Journal, place: Path) -> None:
    journal.begin([Write(slice_of(1), 0, 4), Write(slice_of(2), 0, 4)])
    journal.group_made("/cg/dasec-2")
    journal.group_made("/cg/dasec-1")
    journal.settle([slice_of(1), slice_of(7)])
    journal.group_gone("/cg/dasec-1")
    again, notices = reopen(journal, place)
    assert notices == ()
    assert held(again) == {slice_of(2): (0, (4,))}
    assert again.groups() == ("/cg/dasec-2",)
    again.close()


def test_begin_appends_with_one_write_before_it_returns(
    journal: Journal, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    write = os.write

    def counted(fd: int, data: bytes) -> int:
        sizes.append(len(data))
        return write(fd, data)

    monkeypatch.setattr(os, "write", counted)
    before = (place / "journal").stat().st_size
    journal.begin([Write(slice_of(tid), 0, 4) for tid in range(1, 257)])
    assert len(sizes) == 1
    assert (place / "journal").stat().st_size == before + sizes[0]


def test_a_second_daemon_is_told_who_has_the_journal(journal: Journal, place: Path) -> None:
    with pytest.raises(JournalBusy, match=rf"in use by process {os.getpid()} \(.*\): stop that one first"):
        Journal.open(place, wait_s=0.0)


def test_the_lock_goes_with_its_holder(journal: Journal, place: Path) -> None:
    journal.close()
    open_journal(place).close()


def test_looking_into_the_journal_needs_no_lock_and_changes_nothing(journal: Journal, place: Path) -> None:
    journal.begin([Write(slice_of(1), 0, 4)])
    before = (place / "journal").read_bytes()
    ledger, notices, _ = peek(place)
    assert (list(ledger.held), notices) == ([slice_of(1)], ())
    assert (place / "journal").read_bytes() == before


def test_the_file_stays_bounded_and_loses_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "COMPACT_BYTES", 2000)
    journal = open_journal(place)
    refs = [slice_of(tid) for tid in range(1, 9)]
    for new in range(1, 500):
        journal.begin([Write(ref, 0, new) for ref in refs])
        assert (place / "journal").stat().st_size < 12_000
    again, notices = reopen(journal, place)
    assert notices == ()
    assert held(again) == dict.fromkeys(refs, (0, (498, 499)))
    again.close()


def test_the_number_of_knobs_is_bounded(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "MAX_HELD", 3)
    journal.begin([Write(slice_of(tid), 0, 4) for tid in (1, 2, 3)])
    with pytest.raises(OSError, match="full with 3 knobs"):
        journal.begin([Write(slice_of(4), 0, 4)])
    journal.begin([Write(slice_of(1), 0, 5)])
    assert set(held(journal)) == {slice_of(1), slice_of(2), slice_of(3)}


def test_a_journal_that_is_full_has_room_for_what_it_holds_and_for_nobody_else(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "MAX_HELD", 3)
    journal.begin([Write(slice_of(tid), 0, 4) for tid in (1, 2)])
    batch = [Write(slice_of(tid), 0, 5) for tid in (7, 1, 8, 7, 2, 9)]
    assert journal.without_room(batch) == {slice_of(8), slice_of(9)}
    journal.begin([write for write in batch if write.ref not in (slice_of(8), slice_of(9))])
    assert set(held(journal)) == {slice_of(1), slice_of(2), slice_of(7)}
    assert journal.without_room(batch) == {slice_of(8), slice_of(9)}
    journal.settle([slice_of(1), slice_of(2)])
    assert journal.without_room(batch[-2:]) == frozenset()


def test_a_journal_that_holds_more_than_it_may_takes_nobody_else(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal.begin([Write(slice_of(tid), 0, 4) for tid in (1, 2, 3)])
    monkeypatch.setattr(journal_module, "MAX_HELD", 2)
    assert journal.without_room([Write(slice_of(tid), 0, 5) for tid in (3, 4)]) == {slice_of(4)}


def test_a_full_file_system_means_no_entry_and_an_error_and_later_all_is_well(
    journal: Journal, place: Path
) -> None:
    journal.begin([Write(slice_of(1), 0, 4)])
    before, file_before = held(journal), (place / "journal").read_bytes()
    with file_size_limit(len(file_before) + 100), pytest.raises(OSError, match="full|large"):
        journal.begin([Write(slice_of(tid), 0, 5) for tid in range(1, 20)])
    assert held(journal) == before
    assert (place / "journal").read_bytes() == file_before
    journal.begin([Write(slice_of(1), 0, 6)])
    again, notices = reopen(journal, place)
    assert notices == ()
    assert held(again) == {slice_of(1): (0, (4, 6))}
    again.close()


def test_a_daemon_starts_on_a_full_file_system_and_writes_when_there_is_room(place: Path) -> None:
    with file_size_limit(0):
        journal, notices = Journal.open(place, wait_s=0.0)
        assert ["cannot be written" in str(notice) for notice in notices] == [True]
        with pytest.raises(OSError, match="large|full"):
            journal.begin([Write(slice_of(1), 0, 4)])
        journal.settle([slice_of(1)])
    journal.begin([Write(slice_of(1), 0, 4)])
    assert held(journal) == {slice_of(1): (0, (4,))}
    journal.close()


class file_size_limit:
    """While it lasts no file of this process can grow beyond so many bytes: a full file system."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __enter__(self) -> None:
        self.before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.size, self.before[1]))

    def __exit__(self, *_: object) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, self.before)
