"""`dasec verify`: what it finds, and that clean is clean."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dasec.knobs.knob import Write
from dasec.safety import verify as verify_module
from dasec.safety.journal.journal import Journal
from dasec.safety.verify import verify

from .knobs_for_tests import mask_of, open_journal, slice_of, thread
from .small_kernel import SmallKernel


@pytest.fixture(autouse=True)
def _no_groups_and_no_second_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify_module, "our_groups", tuple)
    monkeypatch.setattr(verify_module, "_SECOND_LOOK_S", 0.0)


@pytest.fixture
def kernel() -> SmallKernel:
    small = SmallKernel()
    small.start(thread(1))
    return small


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    """Of a daemon that runs."""
    one = open_journal(tmp_path)
    yield one
    one.close()


def told(directory: Path, kernel: SmallKernel) -> list[str]:
    return [str(finding) for finding in verify(directory, kernel=kernel)]


def test_where_no_daemon_has_ever_run_all_is_clean(tmp_path: Path, kernel: SmallKernel) -> None:
    assert told(tmp_path / "nothing", kernel) == []


def test_a_knob_that_holds_what_we_meant_or_still_its_prior_value_is_clean(
    tmp_path: Path, kernel: SmallKernel, journal: Journal
) -> None:
    journal.begin([Write(slice_of(1), 0, 4)])
    assert told(tmp_path, kernel) == []
    kernel.set(slice_of(1), 4)
    assert told(tmp_path, kernel) == []


def test_a_knob_that_somebody_else_set_is_found(
    tmp_path: Path, kernel: SmallKernel, journal: Journal
) -> None:
    journal.begin([Write(slice_of(1), 0, 4)])
    kernel.set(slice_of(1), 9)
    assert told(tmp_path, kernel) == [
        "holds 9, we meant 4: slice of thread 1 of process 100: "
        "somebody else writes it: leave it to one of the two"
    ]


def test_a_mask_that_somebody_else_set_is_found_as_a_list_of_cpus(
    tmp_path: Path, kernel: SmallKernel, journal: Journal
) -> None:
    journal.begin([Write(mask_of(1), (0, 1, 2, 3), (0, 1))])
    kernel.set(mask_of(1), (1, 2, 3))
    (finding,) = told(tmp_path, kernel)
    assert finding.startswith("holds 1-3, we meant 0-1: affinity of thread 1 ")


def test_a_thread_that_ended_is_no_finding(tmp_path: Path, kernel: SmallKernel, journal: Journal) -> None:
    journal.begin([Write(slice_of(1), 0, 4)])
    kernel.end(thread(1))
    assert told(tmp_path, kernel) == []


def test_what_a_dead_daemon_left_is_found(tmp_path: Path, kernel: SmallKernel, journal: Journal) -> None:
    journal.begin([Write(slice_of(1), 0, 4)])
    journal.group_made("/cg/dasec-1")
    journal.close()
    assert told(tmp_path, kernel) == [
        f"no daemon runs and 1 knobs and 1 groups are not put back: {tmp_path}: run `dasec restore`"
    ]


def test_a_damaged_journal_is_found_and_not_touched(tmp_path: Path, kernel: SmallKernel) -> None:
    (tmp_path / "journal").write_bytes(b"junk")
    assert len(told(tmp_path, kernel)) == 3
    assert (tmp_path / "journal").read_bytes() == b"junk"


def test_a_group_that_no_journal_knows_is_found(
    tmp_path: Path, kernel: SmallKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify_module, "our_groups", lambda: ("/cg/vm/dasec-7",))
    assert told(tmp_path, kernel) == [
        "group left over: /cg/vm/dasec-7: "
        "no journal here knows it: if no other dasec runs, remove it with rmdir"
    ]
