"""The mainline host with BPF: foreign writes are seen at once, and no seat is given to the wrong thread."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dasec.bpf.libbpf import BpfUnavailable
from dasec.bpf.thread_counters import ThreadCounters
from dasec.hosts.threads.looks import SLEEPERS_READ_BACK
from dasec.knobs.groups import CGROUP
from dasec.knobs.knob import KnobRef, write
from dasec.model import Change, Core, Knob
from tests.conftest import refuse
from tests.contract.stage import MainlineStage, roster

pytestmark = pytest.mark.host

MANY = SLEEPERS_READ_BACK + 4
OURS_NS, THEIRS_NS = 4_000_000, 9_000_000


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[MainlineStage]:
    try:
        ThreadCounters(1).close()
    except BpfUnavailable as unavailable:
        refuse(str(unavailable))
    made = MainlineStage(tmp_path, dry_run=False)
    yield made
    made.close()


def test_of_many_sleepers_one_foreign_write_is_seen_at_the_next_look(stage: MainlineStage) -> None:
    everybody = [stage.spawn() for _ in range(MANY)]
    stage.host.observe(roster(everybody))
    stage.host.apply([Change(vcpu, Knob.RESCHEDULING_LATENCY, 0, OURS_NS, "test") for vcpu in everybody])
    stage.host.observe(roster(everybody))
    stage.meddle(everybody[-1], Knob.RESCHEDULING_LATENCY, THEIRS_NS)
    knobs = stage.host.observe(roster(everybody)).knobs
    assert knobs[everybody[-1]].rescheduling_latency_ns is None
    assert {knobs[vcpu].rescheduling_latency_ns for vcpu in everybody[:-1]} == {OURS_NS}


def test_a_mask_that_we_do_not_hold_is_seen_to_change_at_the_next_look(stage: MainlineStage) -> None:
    everybody = [stage.spawn() for _ in range(3)]
    for _ in range(2):
        stage.host.observe(roster(everybody))
    stage.meddle(everybody[1], Knob.AFFINITY, frozenset({Core(1)}))
    (workload,) = stage.host.observe(roster(everybody)).workloads
    assert workload.vcpus[1].allowed == {Core(1)}


def test_a_move_out_of_our_group_is_seen_at_the_next_look_after_a_weight_write_too(
    stage: MainlineStage,
) -> None:
    everybody = [stage.spawn() for _ in range(5)]
    for weight in (1126, 1300):
        stage.host.observe(roster(everybody))
        stage.host.apply([Change(vcpu, Knob.WEIGHT, 0, weight, "test") for vcpu in everybody])
    moved = everybody[:3]  # of whom one at most is looked at in turn
    for vcpu in moved:
        write(KnobRef(vcpu, CGROUP, stage.hierarchy.mount), "/")
    knobs = stage.host.observe(roster(everybody)).knobs
    assert [knobs[vcpu].weight for vcpu in everybody] == [None, None, None, 1300, 1300]


def test_a_seat_that_is_given_on_counts_for_its_new_owner_only(stage: MainlineStage) -> None:
    first, second = stage.spawn(), stage.spawn()
    stage.host.observe(roster([first, second]))
    stage.end(first)
    stage.host.observe(roster([first, second]))
    third = stage.spawn()
    counters = stage.host.observe(roster([second, third])).counters
    assert counters.keys() == {second, third}
    assert counters[third].on_cpu_ns > 0
    assert counters[third].preemptions is not None


def test_in_a_pid_namespace_it_says_that_the_kernel_knows_other_numbers(stage: MainlineStage) -> None:
    program = (
        "from dasec.hosts.mainline.batch import Seating; from dasec.bpf.libbpf import BpfUnavailable\n"
        "try: Seating()\n"
        "except BpfUnavailable as reason: print(reason)"
    )
    command = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stderr, done.stdout) == (
        "",
        "in a pid or time namespace of its own the kernel knows us by other numbers\n",
    )
