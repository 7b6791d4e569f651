"""In counted guests whoever feeds a load goes first; so wherever a kernel gives groups real-time threads."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dasec.lab.kit.tree import CLIENT, Group
from dasec.lab.kit.workspace import prepared
from experiments.places.counted.inside import SeatedTree

from .own_tree import own_tree

pytestmark = pytest.mark.host


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[SeatedTree]:
    made = own_tree(SeatedTree, "feeders")
    with prepared(made, tmp_path / "prepared"):
        made.make((Group(""), Group(CLIENT)))
        yield made


@pytest.fixture
def measuring() -> Iterator[int]:
    """This process keeps to it."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    yield min(before)
    os.sched_setaffinity(0, before)


def test_whoever_feeds_a_load_is_where_one_measures_and_goes_first(tree: SeatedTree, measuring: int) -> None:
    with placed(tree) as feeder:
        assert (os.sched_getscheduler(feeder.pid), os.sched_getparam(feeder.pid).sched_priority) == (
            os.SCHED_FIFO,
            1,
        )
        assert os.sched_getaffinity(feeder.pid) == {measuring}
        assert feeder.pid in tree.processes(CLIENT)


def test_where_clients_have_cpus_of_their_own_whoever_feeds_a_load_is_there(
    tree: SeatedTree, measuring: int
) -> None:
    apart = frozenset({(os.cpu_count() or 1) - 1})
    if apart == {measuring}:
        pytest.skip("needs two CPUs")
    with placed(replace(tree, clients=apart)) as feeder:
        assert os.sched_getaffinity(feeder.pid) == apart


@contextlib.contextmanager
def placed(tree: SeatedTree) -> Iterator[subprocess.Popen[bytes]]:
    """A process that feeds."""
    feeder = subprocess.Popen(["sleep", "60"])
    try:
        tree.place_process(feeder.pid, CLIENT)
        yield feeder
    except PermissionError:  # also in CI
        pytest.skip("this kernel gives no real-time to groups (RT_GROUP_SCHED); tests/vm has one that does")
    finally:
        feeder.kill()
        feeder.wait()
