"""What BPF programs write and we read, and the other way round, lies where both sides think it does."""

from __future__ import annotations

import ctypes

import pytest

from dasec.bpf import rows, scx, thread_counters, wake_edges
from dasec.bpf.edges import Activity
from dasec.bpf.libbpf import OBJECTS
from dasec.linux import extwords
from tests.btf import Layout, layouts

SCHEDULER, MONITOR, COUNTERS = (
    layouts(OBJECTS / f"{name}.bpf.o") for name in ("scx_dasec", "wake_edges", "thread_counters")
)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        pytest.param(SCHEDULER["options"], scx.Options, id="options"),
        pytest.param(SCHEDULER["vm"], scx._Vm, id="vm"),
        pytest.param(SCHEDULER["ending"], scx._Ending, id="ending"),
        pytest.param(SCHEDULER["order"], wake_edges._Order, id="order, of the scheduler"),
        pytest.param(SCHEDULER["renewal"], wake_edges._Renewal, id="renewal, of the scheduler"),
        pytest.param(MONITOR["order"], wake_edges._Order, id="order"),
        pytest.param(MONITOR["renewal"], wake_edges._Renewal, id="renewal"),
        pytest.param(COUNTERS["seating"], thread_counters._Seating, id="seating"),
        pytest.param(COUNTERS["collecting"], thread_counters._Collecting, id="collecting"),
    ],
)
def test_every_member_is_at_the_same_place(theirs: Layout, ours: type[ctypes.Structure]) -> None:
    named = {name: getattr(ours, name).offset for name, *_ in ours._fields_}
    assert Layout(ctypes.sizeof(ours), named) == theirs
    assert list(named) == list(theirs.members)


@pytest.mark.parametrize(
    ("theirs", "size"),
    [
        pytest.param(SCHEDULER["word"], extwords._WORD.size, id="word"),
        pytest.param(SCHEDULER["activity"], rows.ROW_BYTES, id="activity, of the scheduler"),
        pytest.param(MONITOR["activity"], rows.ROW_BYTES, id="activity"),
        pytest.param(MONITOR["edge_key"], wake_edges._KEY.size, id="key of an edge"),
        pytest.param(MONITOR["edge"], wake_edges._VALUE.size, id="edge"),
        pytest.param(COUNTERS["row"], thread_counters._ROW.size, id="row of counters"),
    ],
)
def test_what_is_read_as_bytes_has_the_same_size(theirs: Layout, size: int) -> None:
    assert theirs.size == size


def test_the_numbers_of_a_word_and_of_an_activity_are_where_they_are_read() -> None:
    assert SCHEDULER["word"].members == {"weight": 0, "unused": 4, "latency_ns": 8}
    for object_ in (SCHEDULER, MONITOR):
        members = object_["activity"].members
        names = list(members)
        assert names[: 3 + rows._TOTALS] == ["serial", "state", "since_ns", *Activity._fields]
        assert (members["in_chain"], members["wakers"]) == (rows._TIMES.size - 8, rows._TIMES.size)
