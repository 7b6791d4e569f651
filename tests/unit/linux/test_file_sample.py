"""Sampling by the patch's file, over plain files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dasec.hosts.patched import unset
from dasec.hosts.patched.files import ProcessFiles
from dasec.hosts.patched.sample import FileSampler
from dasec.hosts.threads.looks import LookedAt
from dasec.hosts.threads.thread import HeldKnob, ManagedThread
from dasec.knobs.knob import KnobRef, NativeKnob, Write
from dasec.knobs.masks import AFFINITY
from dasec.knobs.patched import GRANULARITY, THREAD_WEIGHT
from dasec.knobs.weights import weight_of_nice
from dasec.linux.procfs import KeptThread
from dasec.model import Core, Counters, Knob, Knobs, ThreadState, Vcpu, VcpuId

from .tree import Tree, dasec_line, dasec_text, stat_line, with_timers

DEFAULTS: dict[NativeKnob, int] = {GRANULARITY: 2_000_000, THREAD_WEIGHT: 1024}
MINE = os.getpid()
OTHER = os.getppid()
"""Threads whose scheduling policy the sampler can ask for."""


class Machine:
    """Some threads of this process on plain files."""

    def __init__(self, tree: Tree, tids: tuple[int, ...], core: int = 3) -> None:
        self._tree = tree
        self.files = ProcessFiles(tree.proc)
        self.threads = []
        self.counters: dict[VcpuId, Counters] = {}
        for tid in tids:
            tree.thread(MINE, tid, stat_line(tid, core=core))
            who = VcpuId(MINE, tid, 1000)
            kept = KeptThread(MINE, tid, tree.proc)
            knobs = Knobs(1024, 2_000_000, frozenset({Core(0), Core(1)}))
            thread = ManagedThread(Vcpu(who, "vcpu", frozenset()), kept, 0, Core(0), knobs, "/", None)
            thread.take_up(DEFAULTS)
            self.threads.append(thread)
            self.counters[who] = Counters(0, 0, 0, ThreadState.UNKNOWN, Core(0))
        self.sampler = FileSampler(self.threads, self.counters, self.files)

    @property
    def file(self) -> Path:
        return Path(self._tree.proc) / str(MINE) / "dasec"

    def look(self, *lines: bytes) -> LookedAt:
        self._tree.write(f"proc/{MINE}/dasec", dasec_text(*lines).decode())
        return self.sampler.take(0)

    def of(self, tid: int) -> Counters:
        return self.counters[VcpuId(MINE, tid, 1000)]


def line(tid: int, state: str = "S", **rest: int | str) -> bytes:
    return dasec_line(tid, state, **rest)  # type: ignore[arg-type]


def found_foreign(sample: LookedAt) -> list[ManagedThread]:
    """Whom to look at closely because of the file; the first is the one whose turn it is."""
    return list(sample.closely[1:])


def test_all_that_the_kernel_counts_is_in_the_counters(tree: Tree) -> None:
    one = Machine(tree, (MINE,))
    totals = {"run_ns": 40, "ready_ns": 30, "voluntary": 5, "involuntary": 2, "late": 1}
    sample = one.look(line(MINE, "Q", **totals))
    assert one.of(MINE) == Counters(40, 30, 7, ThreadState.READY, Core(3), 2, 1, ())
    assert one.threads[0] in sample.suspects, "its mask is to be read back"


def test_where_timers_are_counted_apart_wake_ups_from_outside_are_counters(tree: Tree) -> None:
    one = Machine(tree, (MINE,))
    text = with_timers(dasec_text(line(MINE, wakeups=9, external=7)), timers=4)
    tree.write(f"proc/{MINE}/dasec", text.decode())
    one.sampler.take(0)
    found = one.of(MINE)
    assert (found.wakeups, found.external_wakeups) == (9, 3)
    assert (found.chain_ns, found.outward) == (None, None), "no version of the file counts these"


@pytest.mark.parametrize(
    ("letter", "state"),
    [("R", ThreadState.RUNNING), ("Q", ThreadState.READY), ("S", ThreadState.IDLE)],
)
def test_states_are_the_kernels(tree: Tree, letter: str, state: ThreadState) -> None:
    one = Machine(tree, (MINE,))
    one.look(line(MINE, letter))
    assert one.of(MINE).state is state


def test_wakers_are_named_by_their_whole_identity_and_strangers_left_out(tree: Tree) -> None:
    two = Machine(tree, (MINE, OTHER))
    two.look(line(MINE, wakers=f"{OTHER}:7,77:1"), line(OTHER), line(77))
    assert two.of(MINE).wakers == ((VcpuId(MINE, OTHER, 1000), 7),)


def test_a_sleeper_costs_no_object(tree: Tree) -> None:
    two = Machine(tree, (MINE, OTHER))
    two.look(line(MINE, run_ns=1), line(OTHER, run_ns=1))
    before = two.of(OTHER)
    two.look(line(MINE, run_ns=2), line(OTHER, run_ns=1))
    assert two.of(MINE).on_cpu_ns == 2
    assert two.of(OTHER) is before


def test_a_pinned_thread_is_on_its_core(tree: Tree) -> None:
    one = Machine(tree, (MINE,))
    one.threads[0].show(AFFINITY, frozenset({Core(1)}))
    one.look(line(MINE, run_ns=1))
    assert one.of(MINE).core == 1


def test_a_thread_without_a_line_is_gone_though_another_came(tree: Tree) -> None:
    two = Machine(tree, (MINE, OTHER))
    two.look(line(MINE), line(OTHER))
    assert two.look(line(MINE), line(3)).gone == two.threads[1:]


def test_a_number_whose_run_time_went_back_is_another_threads(tree: Tree) -> None:
    one = Machine(tree, (MINE,))
    one.look(line(MINE, run_ns=10))
    assert one.look(line(MINE, run_ns=9)).gone == one.threads


def test_a_process_without_a_file_is_gone_with_all_its_threads(tree: Tree) -> None:
    two = Machine(tree, (MINE, OTHER))
    assert two.sampler.take(0).gone == two.threads


def test_a_knob_that_holds_something_else_than_we_wrote_is_looked_at_closely(tree: Tree) -> None:
    one = Machine(tree, (MINE,))
    (thread,) = one.threads
    ref = KnobRef(thread.id, GRANULARITY)
    thread.hold(HeldKnob(ref, "default", 500, "default", 500, GRANULARITY.shown(500)))
    assert found_foreign(one.look(line(MINE, granularity="500"))) == []
    assert found_foreign(one.look(line(MINE, granularity="700"))) == [thread]


def test_a_knob_written_back_before_we_looked_is_seen_after_our_write(tree: Tree) -> None:
    one = Machine(tree, (MINE,))
    (thread,) = one.threads
    one.look(line(MINE))
    ref = KnobRef(thread.id, THREAD_WEIGHT)
    write = Write(ref, "default", 1126)
    assert one.files.write_together([write]) == {write}
    thread.hold(HeldKnob(ref, "default", 1126, "default", 1126, THREAD_WEIGHT.shown(1126)))
    assert found_foreign(one.look(line(MINE))) == [thread]


def test_a_knob_that_somebody_sets_and_we_do_not_hold_is_hidden_and_to_be_taken_anew(tree: Tree) -> None:
    one = Machine(tree, (MINE,))
    (thread,) = one.threads
    anew: dict[tuple[VcpuId, Knob], None] = {}
    thread.post_on({}, anew)
    one.look(line(MINE))
    assert (thread.knobs[:2], anew) == ((1024, 2_000_000), {})
    one.look(line(MINE, granularity="300", weight="2048"))
    assert thread.knobs[:2] == (None, None)
    assert list(anew) == [(thread.id, Knob.RESCHEDULING_LATENCY), (thread.id, Knob.WEIGHT)]
    thread.show(GRANULARITY, 300)
    thread.show(THREAD_WEIGHT, 2048)
    one.look(line(MINE, granularity="300", weight="2048", run_ns=5))
    assert thread.knobs[:2] == (2048, 300)


def test_a_knob_that_was_left_to_somebody_else_stays_hidden(tree: Tree) -> None:
    one = Machine(tree, (MINE,))
    one.threads[0].show(GRANULARITY, None)
    one.look(line(MINE, granularity="300"))
    assert one.threads[0].knobs.rescheduling_latency_ns is None


def test_a_process_is_written_in_one_transaction(tree: Tree) -> None:
    two = Machine(tree, (MINE, OTHER))
    two.file.write_bytes(b"")
    writes = [
        Write(KnobRef(VcpuId(MINE, MINE, 1000), GRANULARITY), "default", 100_000),
        Write(KnobRef(VcpuId(MINE, OTHER, 1000), THREAD_WEIGHT), 1126, "default"),
        Write(KnobRef(VcpuId(MINE, OTHER, 1000), AFFINITY), (), (0,)),
    ]
    assert two.files.write_together(writes) == set(writes[:2])
    assert two.file.read_text() == f"{MINE} granularity_ns 100000\n{OTHER} weight default\n"


def test_what_a_vanished_process_refuses_is_left_to_be_tried_one_by_one(tree: Tree) -> None:
    write = Write(KnobRef(VcpuId(99, 99, 1), GRANULARITY), "default", 5)
    assert ProcessFiles(tree.proc).write_together([write]) == frozenset()


@pytest.mark.parametrize(("cpus", "granularity_ms"), [("0", 1), ("0-1", 2), ("0-3", 3), ("0-79", 4)])
def test_the_granularity_of_all_is_the_sysctls(tree: Tree, cpus: str, granularity_ms: int) -> None:
    tree.write("sys/devices/system/cpu/online", f"{cpus}\n")
    assert unset.granularity_ns(tree.sysfs) == granularity_ms * 1_000_000
    tree.write("sys/kernel/debug/sched/wakeup_granularity_ns", "700000\n")
    assert unset.granularity_ns(tree.sysfs) == 700_000


@pytest.mark.parametrize(
    ("nice", "weight"), [(0, 1024), (1, 820), (5, 335), (-5, 3121), (19, 15), (-20, 88761)]
)
def test_the_weight_of_nice_is_the_kernels_table_within_a_percent(nice: int, weight: int) -> None:
    assert weight_of_nice(nice) == pytest.approx(weight, rel=0.01)


def test_whoever_gets_the_number_of_a_process_that_ended_is_read_from_its_own_file(tree: Tree) -> None:
    one = Machine(tree, (MINE,))
    one.look(line(MINE, run_ns=5))
    former = one.files.of(MINE)
    tree.write(f"proc/{MINE}/dasec", "")  # what is read of a process that has ended
    assert one.sampler.take(0).gone == one.threads
    assert one.files.of(MINE) is not former
    assert one.look(line(MINE, run_ns=6)).gone == []
