"""A folder of results on a disk that is full."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dasec.errors import ExitStatus, Refusal
from experiments.results.store import Store
from experiments.studies.bare.published import FOLDERS
from experiments.studies.bare.wish import Wish


@contextmanager
def room(most_bytes: int) -> Iterator[None]:
    """No file grows beyond that meanwhile."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_block_for_which_there_is_no_room_is_refused_in_one_line_and_costs_none_before_it(
    tmp_path: Path,
) -> None:
    kept = Store(FOLDERS[0], Wish)
    first, second, *_ = kept.done()
    blocks = {one.key: one for one in kept.kept().wish.blocks("kvm")}
    store = Store(tmp_path, Wish)
    store.add(blocks[first.key], first.runs)
    with room(store.folder.joinpath("runs.jsonl").stat().st_size + 100), pytest.raises(Refusal) as caught:
        store.add(blocks[second.key], second.runs)
    (line,) = caught.value.lines
    assert line == f"{tmp_path / 'runs.jsonl'}: File too large: mend that: the same command goes on"
    assert caught.value.status is ExitStatus.FAILED
    assert store.done() == (first,)
    store.add(blocks[second.key], second.runs)
    assert store.done() == (first, second)
