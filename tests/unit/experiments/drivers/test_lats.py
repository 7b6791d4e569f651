"""TailBench's files: everything that is written is read, and what is no such file is refused."""

from __future__ import annotations

import tempfile
from array import array
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.drivers.lats import FORMATS, read, write

NS = st.integers(0, 2**40)
REQUESTS = st.lists(st.tuples(NS, NS, NS, NS), min_size=1, max_size=50)


def v09(requests: list[tuple[int, int, int, int]]) -> array[int]:
    return array("Q", [word for queue, service, *_ in requests for word in (queue, service, queue + service)])


def plus(requests: list[tuple[int, int, int, int]]) -> array[int]:
    return array(
        "Q",
        [
            word
            for queue, service, date, nic in requests
            for word in (queue, service, queue + service, date, nic)
        ],
    )


@given(REQUESTS)
def test_v09_is_read_as_it_was_written(requests: list[tuple[int, int, int, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "lats.bin", v09(requests))
        found = read(Path(folder), FORMATS["v0.9"])
    assert found.samples == v09(requests)
    assert list(found.sojourns) == [queue + service for queue, service, *_ in requests]
    assert not found.dates
    assert found.seconds is None


@given(REQUESTS, REQUESTS)
def test_all_clients_of_the_plus_version_are_read_with_their_dates(
    one: list[tuple[int, int, int, int]], two: list[tuple[int, int, int, int]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "lats_0.bin", plus(one))
        write(Path(folder) / "lats_1.bin", plus(two))
        found = read(Path(folder), FORMATS["plus"])
    assert found.samples == v09(one + two)
    offsets = list(found.offsets())
    assert offsets == sorted(offsets)
    assert offsets[0] == 0
    assert len(offsets) == len(one) + len(two)
    dates = [date for _, _, date, _ in one + two]
    assert offsets[-1] == max(dates) - min(dates)


def test_a_late_request_without_a_queue_is_let_through(tmp_path: Path) -> None:
    write(tmp_path / "lats_0.bin", array("Q", [0, 900, 800, 1, 700]))
    assert list(read(tmp_path, FORMATS["plus"]).sojourns) == [800]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "lats.bin is empty: the measured part was never entered"),
        (bytes(25), "25 bytes are no whole number of records of 24"),
        (array("Q", [1, 2, 4]).tobytes(), "queue and service are not the sojourn"),
        (array("Q", [1, 2, 3, 1_000, 9] * 3).tobytes(), "is it another format"),
    ],
    ids=["nothing", "a remainder", "no latencies", "the other format"],
)
def test_what_is_no_such_file_is_refused(tmp_path: Path, content: bytes, complaint: str) -> None:
    (tmp_path / "lats.bin").write_bytes(content)
    with pytest.raises(ValueError, match=complaint):
        read(tmp_path, FORMATS["v0.9"])


def test_no_file_at_all_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"wrote no lats\.bin"):
        read(tmp_path, FORMATS["v0.9"])
