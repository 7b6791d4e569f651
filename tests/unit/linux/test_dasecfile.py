"""The patch's file over plain files: what is read, what is written, what is refused."""

from __future__ import annotations

import os

import pytest

from dasec.linux import dasecfile
from dasec.linux.dasecfile import Columns, DasecFile, Setting, parse, transactions
from dasec.linux.errors import ThreadGone

from .tree import Tree, dasec_line, dasec_text, with_timers


def columns_of(text: bytes) -> Columns:
    table = parse(text)
    return table.columns(table.lines)


def test_lines_are_taken_apart_by_columns() -> None:
    text = dasec_text(
        dasec_line(10, "R", run_ns=5, ready_ns=6, voluntary=7, involuntary=8, late=9),
        dasec_line(11, "S", granularity="100000", weight="1126", wakers="10:3,12:1"),
    )
    columns = columns_of(text)
    assert columns.tids == [10, 11]
    assert columns.states == [dasecfile.RUNNING, b"S"]
    assert (columns.run_ns[0], columns.ready_ns[0]) == (5, 6)
    assert (columns.voluntary[0], columns.involuntary[0], columns.late[0]) == (7, 8, 9)
    assert [dasecfile.knob_word(word) for word in columns.granularities] == ["default", 100_000]
    assert [dasecfile.knob_word(word) for word in columns.weights] == ["default", 1126]
    assert [list(dasecfile.wakers(word)) for word in columns.wakers] == [[], [(10, 3), (12, 1)]]
    assert columns.cores is None
    assert columns.wakeups is None, "clients and timers are not told apart"


def test_who_was_woken_from_outside_is_known_where_timers_are_counted_apart() -> None:
    text = with_timers(dasec_text(dasec_line(10, wakeups=9, external=7)), timers=4)
    assert columns_of(text).wakeups == ([9], [3])


def test_a_column_that_a_later_kernel_adds_changes_nothing() -> None:
    text = dasec_text(dasec_line(10, "Q", run_ns=5, wakers="10:3"))
    newer = text.replace(b" wakers", b" cpu wakers").replace(b" 10:3", b" 6 10:3")
    assert columns_of(newer) == columns_of(text)._replace(cores=[6])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "begins with ''"),
        (b"dasec 2\nclock_ns 1\ntid\n", "begins with 'dasec 2'"),
        (b"dasec 1\nclock_ns 1\ntid state\n1 R\n", "a column is missing: 'granularity_ns'"),
        (dasec_text(b"10 S default"), "1 lines have 3 words under 13 names"),
    ],
)
def test_another_format_is_refused_with_what_is_wrong(text: bytes, why: str) -> None:
    with pytest.raises(OSError, match="of another format") as caught:
        columns_of(text)
    assert why in str(caught.value)


def test_a_process_of_any_size_is_read_whole(tree: Tree) -> None:
    lines = [dasec_line(tid) for tid in range(100, 1500)]
    tree.write("proc/10/dasec", dasec_text(*lines).decode())
    file = DasecFile(10, tree.proc)
    assert file.read().lines == lines
    assert file.read().lines == lines
    file.close()


def test_a_process_that_is_not_there_is_gone(tree: Tree) -> None:
    with pytest.raises(ThreadGone):
        DasecFile(10, tree.proc)
    with pytest.raises(ThreadGone):
        dasecfile.read_knob(10, 10, dasecfile.WEIGHT, tree.proc)
    with pytest.raises(ThreadGone):
        dasecfile.write_knob(10, 10, dasecfile.WEIGHT, 1024, tree.proc)


def test_one_thread_has_a_file_of_its_own(tree: Tree) -> None:
    path = tree.write("proc/10/task/11/dasec", dasec_text(dasec_line(11, weight="900")).decode())
    assert dasecfile.read_knob(10, 11, dasecfile.WEIGHT, tree.proc) == 900
    assert dasecfile.read_knob(10, 11, dasecfile.GRANULARITY, tree.proc) == dasecfile.DEFAULT
    os.truncate(path, 0)
    dasecfile.write_knob(10, 11, dasecfile.GRANULARITY, dasecfile.DEFAULT, tree.proc)
    assert path.read_text() == "granularity_ns default\n"


def test_settings_go_into_as_few_transactions_as_they_fit_in() -> None:
    few = [Setting(10, dasecfile.WEIGHT, 1126), Setting(11, dasecfile.GRANULARITY, dasecfile.DEFAULT)]
    assert list(transactions(few)) == [(b"10 weight 1126\n11 granularity_ns default\n", 2)]
    many = [Setting(4_000_000 + n, dasecfile.GRANULARITY, 100_000_000) for n in range(5000)]
    batches = list(transactions(many))
    assert sum(length for _, length in batches) == 5000
    assert len(batches) == 3
    assert all(len(lines) <= dasecfile.LARGEST_WRITE and lines.endswith(b"\n") for lines, _ in batches)
    assert list(transactions([])) == []
