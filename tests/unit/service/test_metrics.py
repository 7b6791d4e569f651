"""The metrics say what the periods said, in a form that Prometheus' own library reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from dasec.config.metrics import Outlets
from dasec.hosts.fake.fake import EXACT
from dasec.log import Announcer
from dasec.metrics.exporter import Exporter
from dasec.model import IDLE, Change, Knob, Limits, Outcome, OwnLimit, Result, Shortfall, Usage
from dasec.record.entries import Entry

from .metrics import LOOPBACK, SUBJECT, Clock, exporter
from .periods import STATE, busy_history, histories


def text_of(entries: Iterable[Entry]) -> str:
    """What is rendered after these periods."""
    told = exporter()
    for entry in entries:
        told.write(entry, STATE)
    return told.text.decode()


def samples(text: str) -> list[Sample]:
    return [sample for family in text_string_to_metric_families(text) for sample in family.samples]


def values(text: str, name: str, **wanted: str) -> dict[str, float]:
    """The samples of that name by thread, or by their only label; those with these labels only."""
    return {
        sample.labels.get("tid") or "/".join(sample.labels.values()): sample.value
        for sample in samples(text)
        if sample.name == name and wanted.items() <= sample.labels.items()
    }


def renamed(entries: Sequence[Entry], name: str) -> list[Entry]:
    """The same periods, but every vCPU has a name like this and a number."""
    workloads = tuple(
        replace(
            workload,
            vcpus=tuple(vcpu._replace(name=name.format(n)) for n, vcpu in enumerate(workload.vcpus)),
        )
        for workload in entries[0].period.workloads
    )
    return [entry._replace(period=replace(entry.period, workloads=workloads)) for entry in entries]


def test_times_and_conflicts_are_the_exact_sums_of_the_periods() -> None:
    entries = busy_history(50)
    run, ready, conflicts = Counter[str](), Counter[str](), Counter[str]()
    for entry in entries:
        for vcpu, used in entry.period.usage.items():
            run[str(vcpu.tid)] += used.consumed_ns
            ready[str(vcpu.tid)] += used.ready_ns
            conflicts[str(vcpu.tid)] += used.conflicts
    text = text_of(entries)
    assert values(text, "dasec_vcpu_run_seconds_total") == pytest.approx(
        {tid: run[tid] / 1e9 for tid in run}, rel=1e-9
    )
    assert values(text, "dasec_vcpu_run_queue_wait_seconds_sum") == pytest.approx(
        {tid: ready[tid] / 1e9 for tid in ready}, rel=1e-9
    )
    assert values(text, "dasec_vcpu_conflicts_total") == conflicts


@given(histories())
@settings(max_examples=30)
def test_a_workload_has_the_sums_of_its_vcpus_and_of_those_that_left_it(entries: list[Entry]) -> None:
    """As long as it stays; one that comes back begins anew, as its vCPUs do."""
    run, waited = Counter[str](), Counter[str]()
    there: set[str] = set()
    for entry in entries:
        workloads = {each.name: each for each in entry.period.workloads}
        assume(len(workloads) == len(entry.period.workloads))
        for name in there - workloads.keys():
            del run[name], waited[name]
        there = set(workloads)
        for name, workload in workloads.items():
            for vcpu in workload.vcpus:
                used = entry.period.usage.get(vcpu.id) or IDLE
                run[name] += used.consumed_ns
                waited[name] += used.ready_ns
    text = text_of(entries)
    assert values(text, "dasec_workload_run_seconds_total") == pytest.approx(
        {name: run[name] / 1e9 for name in there}
    )
    assert values(text, "dasec_workload_wait_seconds_total") == pytest.approx(
        {name: waited[name] / 1e9 for name in there}
    )
    assert values(text, "dasec_cores") == {"": len(entries[-1].period.topology.cores)}


def test_a_vcpu_that_is_another_workloads_now_counts_there_from_then_on() -> None:
    first, second = busy_history(2)
    hungry, calm = first.period.workloads
    mover = hungry.vcpus[0]
    apart = (
        replace(hungry, vcpus=hungry.vcpus[1:]),
        replace(calm, vcpus=(*calm.vcpus, mover)),
    )
    second = second._replace(period=replace(second.period, workloads=apart))
    found = values(text_of([first, second]), "dasec_vcpu_run_seconds_total", workload="calm")
    assert found[str(mover.id.tid)] == second.period.usage[mover.id].consumed_ns / 1e9


def test_the_ready_ratio_is_of_the_time_since_the_rendering_before() -> None:
    first, second = busy_history(2)
    who = second.period.workloads[0].vcpus[0].id
    used = Usage(1, 20_000_000, 3, second.period.usage[who].state, 0)
    second = second._replace(period=replace(second.period, usage={**second.period.usage, who: used}))
    text = text_of([first._replace(clock_ns=80_000_000), second._replace(clock_ns=160_000_000)])
    assert values(text, "dasec_vcpu_cpu_ready_ratio")[str(who.tid)] == 0.25


def test_what_is_left_out_for_want_of_room_is_counted_by_workload_and_as_it_is_at_each_rendering() -> None:
    short = [Shortfall(), Shortfall(), Shortfall({"hungry": 904}, {"calm": 96}, lost=12, missed=3)]
    told = Exporter(Outlets(LOOPBACK, None, None, 1), Announcer(), None, Clock())
    told.begin(SUBJECT, iter(short).__next__)
    found = []
    for entry in busy_history(2):
        told.write(entry, STATE)
        text = told.text.decode()
        totals = [values(text, f"dasec_wakeups_{what}_total")[""] for what in ("lost", "missed")]
        found.append(
            (
                *totals,
                values(text, "dasec_workload_threads_left_out"),
                values(text, "dasec_workload_threads_unheard"),
            )
        )
    none = {"hungry": 0, "calm": 0}
    assert found == [(0, 0, none, none), (12, 3, {**none, "hungry": 904}, {**none, "calm": 96})]


def test_waits_fall_into_buckets_by_the_mean_of_a_period() -> None:
    (entry,) = busy_history(1)
    vcpu = entry.period.workloads[0].vcpus[0].id
    state = entry.period.usage[vcpu].state
    waits = [Usage(0, 12_000_000, 3, state, 0), Usage(0, 50_000_000, 0, state, 0), Usage(0, 1, 1, state, 0)]
    entries = [entry._replace(period=replace(entry.period, usage={vcpu: used})) for used in waits]
    found = {
        sample.labels["le"]: sample.value
        for sample in samples(text_of(entries))
        if sample.name == "dasec_vcpu_run_queue_wait_seconds_bucket" and sample.labels["tid"] == str(vcpu.tid)
    }
    assert (found["0.002"], found["0.004"], found["0.032"], found["0.08"], found["+Inf"]) == (0, 3, 3, 4, 4)


@settings(max_examples=25)
@given(histories())
def test_whatever_is_seen_the_library_reads_it_and_histograms_hold_together(entries: list[Entry]) -> None:
    text = text_of(entries)
    seen = samples(text)
    keys = [(sample.name, *sorted(sample.labels.items())) for sample in seen]
    assert len(keys) == len(set(keys))
    threads = sum(len(workload.vcpus) for workload in entries[-1].period.workloads)
    assert sum(sample.name == "dasec_vcpu_run_seconds_total" for sample in seen) == threads
    for sample in seen:
        if sample.name.endswith("_seconds_count"):
            base = sample.name.removesuffix("_count")
            buckets = [
                s.value
                for s in seen
                if s.name == f"{base}_bucket" and sample.labels.items() <= s.labels.items()
            ]
            assert buckets == sorted(buckets)
            assert buckets[-1] == sample.value


@settings(max_examples=25)
@given(st.text(max_size=20))
def test_any_name_of_a_thread_comes_through(name: str) -> None:
    entries = renamed(busy_history(1), name.replace("{", "").replace("}", "") + "/{}")
    told = {vcpu.name for workload in entries[0].period.workloads for vcpu in workload.vcpus}
    found = samples(text_of(entries))
    assert {s.labels["vcpu"] for s in found if s.name == "dasec_vcpu_run_seconds_total"} == told


def test_virtual_machines_also_have_the_names_of_the_libvirt_exporter() -> None:
    entries = renamed(busy_history(10), "CPU {}/KVM")
    text = text_of(entries)
    ours = values(text, "dasec_vcpu_run_queue_wait_seconds_sum", workload="hungry")
    theirs = values(text, "libvirt_domain_vcpu_delay_seconds_total", domain="hungry")
    assert list(theirs) == [f"hungry/{number}" for number in range(4)]
    assert list(theirs.values()) == list(ours.values())
    assert len(values(text, "libvirt_domain_vcpu_time_seconds_total")) == 8


@pytest.mark.parametrize("name", ["worker {}", "CPU {}", "CPU /{}", "CPU x/KVM{}"])
def test_other_threads_have_no_names_of_the_libvirt_exporter(name: str) -> None:
    assert "libvirt_domain" not in text_of(renamed(busy_history(1), name))


def test_writes_are_counted_by_rule_and_by_outcome() -> None:
    (entry,) = busy_history(1)
    vcpu = entry.period.workloads[0].vcpus[0].id
    results = [
        Result(Change(vcpu, Knob.WEIGHT, 1, 2, "tsa.raise"), outcome)
        for outcome in (Outcome.APPLIED, Outcome.APPLIED, Outcome.REJECTED)
    ]
    text = text_of([entry._replace(results=tuple(results), violations=("a",), late_periods=3)])
    assert values(text, "dasec_changes_total") == {"tsa.raise": 2}
    assert values(text, "dasec_writes_total", knob="weight", outcome="rejected") == {"weight/rejected": 1}
    assert values(text, "dasec_violations_total") == {"": 1}
    assert values(text, "dasec_late_periods_total") == {"": 3}


def test_the_time_in_which_wake_ups_were_followed_is_a_metric_of_its_own() -> None:
    first, second = busy_history(2)
    text = text_of([first, second._replace(period=replace(second.period, unwatched=True))])
    assert values(text, "dasec_watched_seconds_total") == {"": first.period.length_ns / 1e9}
    assert values(text, "dasec_periods_total") == {"": 2}


def test_a_vcpu_that_is_gone_is_no_more_and_one_that_stays_goes_on_counting() -> None:
    first, second = busy_history(2)
    less = second._replace(period=replace(second.period, workloads=second.period.workloads[:1]))
    text = text_of([first, less])
    run = values(text, "dasec_vcpu_run_seconds_total")
    assert list(run) == ["100", "101", "102", "103"]
    who = first.period.workloads[0].vcpus[0].id
    both = first.period.usage[who].consumed_ns + second.period.usage[who].consumed_ns
    assert run["100"] == pytest.approx(both / 1e9)


def test_nothing_is_there_before_the_first_period_but_the_daemon_itself() -> None:
    assert values(exporter().text.decode(), "dasec_periods_total") == {"": 0}


def test_the_budget_is_a_metric() -> None:
    found = values(text_of(busy_history(1)), "dasec_cpu_budget_ratio")
    assert found == {"": SUBJECT.budget_percent / 100}


def test_who_can_write_no_weight_any_more_writes_none_below_groups() -> None:
    can = [EXACT, EXACT, replace(EXACT, weight=False)]
    told = Exporter(Outlets(LOOPBACK, None, None, 1), Announcer(), None, Clock())
    told.begin(SUBJECT, capabilities=iter(can).__next__)
    found = []
    for entry in busy_history(2):
        told.write(entry, STATE)
        found.append(values(told.text.decode(), "dasec_nested_weight")[""])
    assert found == [1, 0]


def test_a_limit_its_throttling_and_caps_are_told_of_workloads_that_have_one() -> None:
    (entry,) = busy_history(1)
    vcpus = [vcpu.id for vcpu in entry.period.workloads[0].vcpus]
    limits = {"hungry": Limits(1_500_000, 0, 700_000_000, {vcpus[0]: OwnLimit(300_000, 250_000_000)})}
    limited = entry._replace(period=replace(entry.period, limits=limits))
    text = text_of([limited, limited])
    assert 'dasec_workload_limit_cores{workload="hungry"} 1.5' in text
    assert 'dasec_workload_throttled_seconds_total{workload="hungry"} 1.4' in text
    assert 'dasec_workload_capped_vcpus{workload="hungry"} 1' in text
    assert 'dasec_workload_spared_seconds_total{workload="hungry"} 0' in text
    stopped = values(text, "dasec_vcpu_throttled_seconds_total")
    used_up = values(text, "dasec_vcpu_limit_used_seconds_total")
    assert len(stopped) == len(used_up) == len(vcpus)
    assert sorted(stopped.values()) == [0.0] * (len(vcpus) - 1) + [0.5]
    assert sum(used_up.values()) > 0
    assert 'dasec_workload_limit_cores{workload="calm"}' not in text
