"""Which blocks a folder of results keeps. Nothing is measured."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from dasec.lab.kit.results import RunResult
from dasec.lab.load_tool import latencies
from experiments.places.counted.guests import keep_block
from experiments.places.counted.machine import Told
from experiments.plan.cells import Suite
from experiments.results.store import Store
from experiments.run.host import keep

from .loads.test_results import BLOCKS, WISH, run

BLOCK = BLOCKS[0]


def runs() -> tuple[RunResult, ...]:
    return tuple(run(arm, BLOCK.repetition, BLOCK.cell, 1.0) for arm in BLOCK.arms)


def less_asked(one: RunResult) -> RunResult:
    """The same run, in which the first workload had a single request."""
    first, *others = one.tenants
    return replace(one, tenants=(replace(first, latencies=latencies([10**6])), *others))


def test_a_block_whose_arms_had_different_requests_is_told_and_not_kept(tmp_path: Path) -> None:
    store = Store(tmp_path, Suite)
    *alike, last = runs()
    why = keep(WISH, store, BLOCK, (*alike, less_asked(last)))
    assert why is not None
    assert why.startswith(f"{BLOCK.cell.name}, repetition 1: arms had different requests")
    assert store.done() == ()
    assert keep(WISH, store, BLOCK, runs()) is None
    assert [one.key for one in store.done()] == [BLOCK.key]


def test_what_a_guest_said_is_kept_only_if_its_arms_had_the_same_requests(tmp_path: Path) -> None:
    store = Store(tmp_path, Suite)
    *alike, last = runs()
    for said, kept in (((*alike, less_asked(last)), 0), ((*alike, last), 1)):
        why = keep_block(BLOCK, Told([asdict(one) for one in said]), store, partial(keep, WISH, store))
        assert (why is None, len(store.done())) == (bool(kept), kept)
