"""The batch read of counters against the kernel's own files, on real threads."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dasec.bpf import libbpf
from dasec.bpf.thread_counters import State, ThreadCounters, ThreadTotals
from dasec.hosts.host import HostSettings
from dasec.hosts.sched_ext import kernel
from dasec.linux import procfs
from guests.waiting import wait_for

from .children import Children, kept_off

pytestmark = pytest.mark.host

READS = 200
SEATS, ROW_BYTES = 8, 56


@pytest.fixture
def counters() -> Iterator[ThreadCounters]:
    made = ThreadCounters(seats=SEATS)
    yield made
    made.close()


@pytest.fixture
def children() -> Iterator[Children]:
    made = Children()
    yield made
    made.close()


@pytest.fixture
def core() -> int:
    return max(os.sched_getaffinity(0))


def test_an_object_that_is_not_there_is_named_with_what_to_do(tmp_path: Path) -> None:
    said = f"{tmp_path}/thread_counters.bpf.o cannot be read: No such file or directory: install DASEC anew"
    with pytest.raises(libbpf.BpfUnavailable, match=re.escape(said)):
        libbpf.load("thread_counters", sizes={}, folder=tmp_path)


@pytest.mark.parametrize(
    "load",
    [
        pytest.param(lambda: libbpf.load("thread_counters", sizes={"nobody": 1}), id="map"),
        pytest.param(lambda: libbpf.load("thread_counters", sizes={}, without=["nobody"]), id="left out"),
        pytest.param(lambda: libbpf.load("thread_counters", sizes={}, sleepable=["nobody"]), id="sleepable"),
        pytest.param(lambda: libbpf.load("thread_counters", sizes={}, operations="nobody"), id="operations"),
    ],
)
def test_what_an_object_does_not_have_is_an_error_and_no_crash(
    load: Callable[[], libbpf.BpfObject],
) -> None:
    with pytest.raises(KeyError, match="thread_counters has no (map|program) nobody"):
        load()


@pytest.mark.parametrize("rows", [SEATS - 1, SEATS + 1])
def test_what_is_to_be_read_as_another_size_than_it_has_is_an_error(rows: int) -> None:
    with (
        libbpf.load("thread_counters", sizes={"seats": SEATS, "rows": SEATS}) as loaded,
        pytest.raises(ValueError, match=f"has {SEATS * ROW_BYTES} bytes of rows, we {rows * ROW_BYTES}"),
    ):
        loaded.view("rows", rows * ROW_BYTES)


def take(counters: ThreadCounters, seat: int, pid: int) -> bool:
    return counters.seat(seat, pid, Children.start_ticks(pid))


def by_seat(rows: list[ThreadTotals]) -> dict[int, ThreadTotals]:
    return {row.seat: row for row in rows}


def test_a_sleeper_has_the_numbers_of_its_schedstat(
    counters: ThreadCounters, children: Children, core: int
) -> None:
    pid = children.sleeper(core)
    assert take(counters, 3, pid)
    (row,) = counters.read()
    assert (row.seat, row.state, row.core, row.policy) == (3, State.SLEEPING, core, 0)
    schedstat = procfs.parse_schedstat(procfs.read_bytes(f"/proc/{pid}/task/{pid}/schedstat"))
    assert (row.on_cpu_ns, row.ready_ns, row.dispatches) == schedstat
    status = procfs.read_bytes(f"/proc/{pid}/task/{pid}/status").decode().splitlines()
    switches = {line.split(":")[0]: int(line.split()[1]) for line in status if "ctxt_switches" in line}
    assert row.voluntary_switches == switches["voluntary_ctxt_switches"]
    assert row.involuntary_switches == switches["nonvoluntary_ctxt_switches"]


def test_who_slept_through_makes_no_row_until_it_has_run(
    counters: ThreadCounters, children: Children, core: int
) -> None:
    pid = children.sleeper(core)
    assert take(counters, 0, pid)
    (before,) = counters.read()
    assert counters.read() == []
    assert counters.read(sleepers=True) == [before]
    os.kill(pid, signal.SIGUSR1)
    children.wait_until_asleep(pid)
    (after,) = counters.read()
    assert after.dispatches > before.dispatches
    assert after.on_cpu_ns > before.on_cpu_ns
    assert counters.read() == []


def test_of_two_spinners_on_one_core_one_is_queued(
    counters: ThreadCounters, children: Children, core: int
) -> None:
    """Or both, while a stranger has their core: so we look until it is theirs."""
    for seat in range(2):
        assert take(counters, seat, children.spinner(core))
    seen: list[list[State]] = []

    def one_runs() -> bool:
        seen.append(sorted(State(row.state) for row in counters.read() if row.core == core))
        return len(seen) >= READS and [State.QUEUED, State.RUNNING] in seen

    with kept_off(core):
        wait_for(one_runs, every_s=0.002)
    assert {len(two) for two in seen} == {2}
    assert not any(State.SLEEPING in two for two in seen)
    # Both are caught on the core only if it switches within the microseconds between their rows.
    assert sum(State.QUEUED in two for two in seen) > len(seen) / 2


def test_an_ended_thread_says_so_until_its_seat_is_free(
    counters: ThreadCounters, children: Children, core: int
) -> None:
    pid, other = children.sleeper(core), children.sleeper(core)
    assert take(counters, 0, pid)
    assert take(counters, 1, other)
    counters.read()
    children.end(pid)
    assert [(row.seat, row.state) for row in counters.read()] == [(0, State.ENDED)]
    assert [(row.seat, row.state) for row in counters.read()] == [(0, State.ENDED)]
    counters.leave(0)
    assert counters.read() == []


def test_a_number_with_another_start_time_is_another_thread(
    counters: ThreadCounters, children: Children, core: int
) -> None:
    pid = children.sleeper(core)
    assert not counters.seat(0, pid, Children.start_ticks(pid) + 1)
    assert counters.read(sleepers=True) == []
    children.end(pid)
    assert not counters.seat(0, pid, 1)


def test_a_seat_beyond_the_last_is_refused(counters: ThreadCounters, children: Children, core: int) -> None:
    assert not take(counters, 8, children.sleeper(core))


def test_closing_leaves_no_descriptor_behind() -> None:
    before = os.listdir("/proc/self/fd")
    made = ThreadCounters(seats=SEATS)
    assert len(os.listdir("/proc/self/fd")) > len(before)
    made.close()
    made.close()
    assert os.listdir("/proc/self/fd") == before


def test_without_the_right_to_load_it_says_so_in_one_line() -> None:
    program = (
        "from dasec.bpf import libbpf; from dasec.bpf.thread_counters import ThreadCounters\n"
        "try: ThreadCounters(8)\n"
        "except libbpf.BpfUnavailable as reason: print(reason)"
    )
    command = ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all", sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout == (
        "the kernel refuses the BPF object thread_counters:"
        " needs the rights of root, or CAP_BPF and CAP_PERFMON\n"
    )


def test_a_machine_without_the_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libbpf, "LIBRARY", "libbpf-that-nobody-has.so.1")
    libbpf._library.cache_clear()
    with pytest.raises(libbpf.BpfUnavailable, match="apt-get install libbpf1"):
        ThreadCounters(seats=SEATS)
    libbpf._library.cache_clear()


def test_a_scheduler_that_is_refused_leaves_no_counters_open(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise libbpf.BpfUnavailable("not today")

    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    monkeypatch.setattr(kernel, "_entered", refused)
    before = descriptors()
    with pytest.raises(libbpf.BpfUnavailable, match="not today"):
        kernel.ExtKernel(HostSettings())
    assert descriptors() <= before
