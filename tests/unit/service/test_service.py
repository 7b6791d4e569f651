"""What `dasec run` puts together: hosts that lack a knob, dry runs, selectors."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dasec.config.config import MatchSection, WorkloadSection, check
from dasec.hosts.fake.fake import EXACT
from dasec.hosts.fake.rehearsal import Rehearsal
from dasec.knobs.knob import KnobRef, Write
from dasec.knobs.slices import SLICE
from dasec.model import IDLE, Capabilities, VcpuId
from dasec.period import between
from dasec.roster import RosterEntry
from dasec.safety.journal.dry_run import NoJournal
from dasec.service.run import Order, serve
from dasec.workloads.discovery import Discovered, Together
from dasec.workloads.open import discovery, selector
from dasec.workloads.processes import StaticWorkloads

NO_LATENCY = replace(
    EXACT,
    backend="mainline",
    weight=False,
    weight_note="the cpu controller is not handed on there",
    rescheduling_latency=False,
    rescheduling_latency_note="the kernel ignores the slice",
    warnings=("something else",),
)


def dry_order(folder: Path, periods: int) -> Order:
    config = check(
        {"period_ms": 10, "workload": [{"name": "a", "pids": [os.getpid()], "share": 1024}]}, "test"
    )
    return Order(folder / "dasec.toml", config, True, periods, folder / "r", folder / "state")


def run_dry(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capabilities: Capabilities
) -> list[dict[str, object]]:
    monkeypatch.setattr("dasec.service.run.probe", lambda backend, *, duel: capabilities)
    serve(dry_order(folder, 3))
    return [json.loads(line) for line in (folder / "r").read_bytes().splitlines()[1:]]


def test_a_knob_that_this_kernel_lacks_is_one_line_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("dasec.gap.LONGEST_NS", sys.maxsize)  # a machine that stands still has a line more
    lines = run_dry(tmp_path, monkeypatch, NO_LATENCY)
    assert capsys.readouterr().err.splitlines() == [
        "dasec: policy critical on mainline (dry run: no knob is written), every 10 ms, guarded",
        "dasec: this host has no knob for weight: the cpu controller is not handed on there",
        "dasec: this host has no knob for rescheduling latency: the kernel ignores the slice",
        "dasec: something else",
        "dasec: dry run: no knob would have been written",
        "dasec: stopped: 0 knobs put back",
    ]
    assert len(lines) == 3
    knobs = lines[0]["knobs"]
    assert isinstance(knobs, list)
    assert all(row[:2] == [None, None] for _, row in knobs)


def test_a_dry_run_leaves_no_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_dry(tmp_path, monkeypatch, NO_LATENCY)
    assert [path.name for path in tmp_path.iterdir()] == ["r"]


def test_the_journal_of_a_dry_run_refuses_every_write() -> None:
    journal = NoJournal()
    ref = KnobRef(VcpuId(1, 1, 1), SLICE)
    with pytest.raises(OSError, match="dry run"):
        journal.begin([Write(ref, 0, 4_000_000)])
    with pytest.raises(OSError, match="dry run"):
        journal.group_made("/sys/fs/cgroup/cpu/dasec")


def test_a_configured_workload_becomes_the_selector_that_it_names() -> None:
    by_pid = selector(WorkloadSection(name="a", pids=(4, 5), share=7))
    assert (by_pid.name, by_pid.share, by_pid.pids) == ("a", 7, (4, 5))
    assert selector(WorkloadSection(name="b", cgroup="/x")).cgroup == "/x"
    assert selector(WorkloadSection(name="c", match=MatchSection(comm="memcached"))).comm == "memcached"


def test_the_rehearsal_lets_real_time_pass_and_follows_the_roster() -> None:
    now_ns = 0
    host = Rehearsal(2, dry_run=False, clock=lambda: now_ns)
    both = [RosterEntry("a", None, ((1, 1), (1, 2)))]
    before = host.observe(both)
    now_ns += 80_000_000
    after = host.observe(both)
    period = between(0, before, after)
    assert period.length_ns == 80_000_000
    assert [usage is IDLE for usage in period.usage.values()] == [False, True]
    now_ns += 80_000_000
    assert [vcpu.tid for vcpu in host.observe([RosterEntry("a", None, ((1, 2),))]).counters] == [2]


def test_libvirt_is_followed_only_where_somebody_asked_for_it() -> None:
    workload: dict[str, object] = {"name": "a", "pids": [1]}
    assert isinstance(discovery(check({"workload": [workload]}, "test")), StaticWorkloads)
    domain = {"name": "b", "libvirt": "vm-*"}
    for asked in ({"workload": [workload, domain]}, {"workload": [workload], "libvirt": {"metadata": True}}):
        assert isinstance(discovery(check(asked, "test")), Together)


def test_two_discoveries_are_one_and_the_roster_stays_while_nothing_changes() -> None:
    one = Told((RosterEntry("a", None, ((1, 1),)),))
    two = Told((RosterEntry("b", None, ((2, 2),)),), "no libvirt")
    both = Together(one, two)
    first = both.discover(0)
    assert [entry.name for entry in first.roster] == ["a", "b"]
    assert first.trouble == "no libvirt"
    assert both.discover(1).roster is first.roster
    two.roster = ()
    assert [entry.name for entry in both.discover(2).roster] == ["a"]


class Told:
    """A discovery that finds what it is told."""

    def __init__(self, roster: tuple[RosterEntry, ...], trouble: str | None = None) -> None:
        self.roster = roster
        self._trouble = trouble

    def discover(self, clock_ns: int) -> Discovered:
        return Discovered(self.roster, (), self._trouble)

    def close(self) -> None:
        pass
