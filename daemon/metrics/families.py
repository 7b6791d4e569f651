"""The metrics themselves: names, meanings, and their samples from a tally."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..guard import GuardStanding
from ..model import Knob, Outcome, Shortfall, Workload
from . import exposition
from .exposition import Buckets, family, labels, one, seconds
from .tally import STAGES, Totals, VcpuTotals

RUN = "dasec_vcpu_run_queue_wait_seconds"
STAGE = "dasec_stage_seconds"


@dataclass(frozen=True, slots=True)
class About:
    """What is not counted from periods."""

    version: str
    policy: str
    backend: str
    dry_run: bool
    period_ms: int
    started_s: float
    budget_ratio: float


@dataclass(frozen=True, slots=True)
class Now:
    """The daemon at the time of rendering. `since_ns`: length of the time that ratios are of."""

    cpu_s: float
    resident_bytes: int
    troubles: int
    since_ns: int
    standings: Sequence[GuardStanding]
    short: Shortfall
    nested_weight: bool


def render(about: About, tally: Totals, now: Now) -> str:
    """All metrics as one text; ratios start anew with it."""
    return "".join([*_daemon(about, now), *_doings(tally), *_workloads(tally, now), *_vcpus(tally, now)])


def _daemon(about: About, now: Now) -> Iterator[str]:
    given = labels(
        version=about.version,
        policy=about.policy,
        backend=about.backend,
        dry_run="true" if about.dry_run else "false",
    )
    yield family("dasec_info", "gauge", "What runs; always 1.", [(given, 1)])
    yield one("dasec_period_seconds", "gauge", "The length of a control period.", about.period_ms / 1000)
    yield one("dasec_cpu_budget_ratio", "gauge", "What the daemon may take of one core.", about.budget_ratio)
    yield one(
        "dasec_nested_weight",
        "gauge",
        "0 where no weight is written below a group of a workload's own, as the kernel starves groups.",
        int(now.nested_weight),
    )
    yield one("dasec_troubles", "gauge", "Troubles that dasec status shows at present.", now.troubles)
    yield one(
        "dasec_wakeups_lost_total",
        "counter",
        "Wake-ups whose waker found no room among the edges.",
        now.short.lost,
    )
    yield one(
        "dasec_wakeups_missed_total",
        "counter",
        "Wake-ups and dispatches that were not seen, but must have been.",
        now.short.missed,
    )
    yield one("dasec_cpu_seconds_total", "counter", "CPU time of the daemon.", now.cpu_s)
    yield one("dasec_resident_memory_bytes", "gauge", "Memory of the daemon.", now.resident_bytes)
    yield one("dasec_start_time_seconds", "gauge", "When the daemon started (Unix time).", about.started_s)


def _doings(tally: Totals) -> Iterator[str]:
    yield one("dasec_periods_total", "counter", "Periods decided.", tally.periods)
    yield one(
        "dasec_watched_seconds_total",
        "counter",
        "Time of periods in which wake-ups were followed, where the host can.",
        seconds(tally.watched_ns),
    )
    yield one("dasec_cores", "gauge", "CPUs of the host that workloads may use.", tally.cores)
    yield one("dasec_late_periods_total", "counter", "Periods skipped for being late.", tally.late_periods)
    yield one(
        "dasec_last_period_monotonic_seconds",
        "gauge",
        "CLOCK_MONOTONIC at the end of the last period counted here.",
        seconds(tally.clock_ns),
    )
    yield one(
        "dasec_violations_total",
        "counter",
        "Wishes of the policy that broke an invariant, and were not written.",
        tally.violations,
    )
    yield exposition.counts("dasec_changes_total", "Knobs written, by rule.", "rule", tally.rules)
    yield family(
        "dasec_writes_total",
        "counter",
        "Writes by knob and outcome; rejected ones are errors.",
        [
            (labels(knob=knob.value, outcome=outcome.value), tally.writes[knob, outcome])
            for knob in Knob
            for outcome in Outcome
        ],
    )
    yield exposition.head(STAGE, "histogram", "How long each stage of a period took.")
    for name in STAGES:
        buckets = Buckets(labels(stage=name))
        yield buckets.lines(STAGE, tally.stages[name], tally.stage_ns[name])


def _workloads(tally: Totals, now: Now) -> Iterator[str]:
    off = {standing.workload for standing in now.standings if standing.is_neutral}
    given = [(labels(workload=each.name), each) for each in tally.workloads]
    yield family(
        "dasec_workload_vcpus",
        "gauge",
        "vCPUs of a workload.",
        [(who, len(each.guests_own)) for who, each in given],
    )
    yield family(
        "dasec_workload_share", "gauge", "Share of a workload.", [(who, each.share) for who, each in given]
    )
    yield family(
        "dasec_workload_threads_left_out",
        "gauge",
        "Threads of a workload that are left alone, as there are more than there is room for.",
        [(who, now.short.left_out.get(each.name, 0)) for who, each in given],
    )
    yield family(
        "dasec_workload_threads_unheard",
        "gauge",
        "Managed threads of a workload without a slot: nobody counts their wake-ups.",
        [(who, now.short.unheard.get(each.name, 0)) for who, each in given],
    )
    yield family(
        "dasec_workload_policy_off",
        "gauge",
        "1 where the guard has found harm and keeps the policy off.",
        [(who, int(each.name in off)) for who, each in given],
    )
    consumed_ns, ready_ns = tally.by_workload()
    yield family(
        "dasec_workload_run_seconds_total",
        "counter",
        "Time of a workload's vCPUs on a core.",
        [(who, seconds(consumed_ns.get(each.name, 0))) for who, each in given],
    )
    yield family(
        "dasec_workload_wait_seconds_total",
        "counter",
        "Time for which a workload's vCPUs were ready without a core.",
        [(who, seconds(ready_ns.get(each.name, 0))) for who, each in given],
    )
    yield from _limits(tally, given)


def _limits(tally: Totals, given: Sequence[tuple[str, Workload]]) -> Iterator[str]:
    limited = [(who, each.name, tally.limits[each.name]) for who, each in given if each.name in tally.limits]
    yield family(
        "dasec_workload_limit_cores",
        "gauge",
        "The tightest CPU limit of a workload, in cores.",
        [(who, limits.tightest_ppm / 1_000_000) for who, _, limits in limited],
    )
    yield family(
        "dasec_workload_throttled_seconds_total",
        "counter",
        "Time for which that limit stopped threads, over all CPUs.",
        [(who, seconds(tally.costs.stopped_ns(name))) for who, name, _ in limited],
    )
    yield family(
        "dasec_workload_spared_seconds_total",
        "counter",
        "Time for which that limit would have stopped the whole workload without our caps, reckoned.",
        [(who, seconds(tally.costs.spared_ns(name))) for who, name, _ in limited],
    )
    yield family(
        "dasec_workload_capped_vcpus",
        "gauge",
        "vCPUs with a cap or a loan of ours.",
        [(who, sum(1 for own in limits.own.values() if own.present_ppm)) for who, _, limits in limited],
    )


def _vcpus(tally: Totals, now: Now) -> Iterator[str]:
    vcpus = tally.vcpus
    yield family(
        "dasec_vcpu_run_seconds_total",
        "counter",
        "Time on a core.",
        [(each.given, seconds(each.consumed_ns)) for each in vcpus],
    )
    if vcpus:
        yield exposition.head(
            RUN, "histogram", "Waits for a core: of the dispatches of a period, the mean. The sum is exact."
        )
        yield from [each.buckets.lines(RUN, each.waits, each.ready_ns) for each in vcpus]
    yield family(
        "dasec_vcpu_cpu_ready_ratio",
        "gauge",
        "CPU-Ready: part of the time since the rendering before this one that it was ready without a core.",
        [(each.given, _ready_ratio(each, now.since_ns)) for each in vcpus],
    )
    yield family(
        "dasec_vcpu_conflicts_total",
        "counter",
        "Times that a low-latency vCPU was preempted or not started in time.",
        [(each.given, each.conflicts) for each in vcpus],
    )
    yield family(
        "dasec_vcpu_chain_seconds_total",
        "counter",
        "Time running or ready in chains that siblings wait for, where and while that is counted.",
        [(each.given, seconds(each.chain_ns)) for each in vcpus if each.chain_ns is not None],
    )
    yield family(
        "dasec_vcpu_throttled_seconds_total",
        "counter",
        "Time for which a vCPU was stopped by its own quota or cap, where its workload has a limit.",
        [(each.given, seconds(tally.costs.own_ns(vcpu))) for vcpu, each in tally.limited()],
    )
    yield family(
        "dasec_vcpu_limit_used_seconds_total",
        "counter",
        "Time on a core in periods in which its workload's limit stopped somebody: who used the limit up.",
        [(each.given, seconds(tally.costs.used_up_ns(vcpu))) for vcpu, each in tally.limited()],
    )
    yield from _knobs(tally, vcpus)
    yield from _as_libvirt(vcpus)


def _ready_ratio(totals: VcpuTotals, since_ns: int) -> float:
    grown_ns, totals.rendered_ready_ns = totals.ready_ns - totals.rendered_ready_ns, totals.ready_ns
    return round(grown_ns / since_ns, 5) if since_ns else 0.0


def _knobs(tally: Totals, vcpus: Sequence[VcpuTotals]) -> Iterator[str]:
    held = [(each.given, knobs) for each, knobs in zip(vcpus, tally.knobs, strict=True) if knobs]
    yield family(
        "dasec_vcpu_weight",
        "gauge",
        "Weight; 1024 is neutral.",
        [(given, knobs.weight) for given, knobs in held if knobs.weight is not None],
    )
    yield family(
        "dasec_vcpu_rescheduling_latency_seconds",
        "gauge",
        "Rescheduling latency.",
        [
            (given, seconds(knobs.rescheduling_latency_ns))
            for given, knobs in held
            if knobs.rescheduling_latency_ns is not None
        ],
    )
    yield family(
        "dasec_vcpu_affinity_cpus",
        "gauge",
        "On how many CPUs it may run.",
        [(given, len(knobs.affinity)) for given, knobs in held if knobs.affinity is not None],
    )


def _as_libvirt(vcpus: Sequence[VcpuTotals]) -> Iterator[str]:
    """The names and labels of prometheus-libvirt-exporter, for what means the same."""
    domains = [(each.libvirt, each) for each in vcpus if each.libvirt is not None]
    yield family(
        "libvirt_domain_vcpu_time_seconds_total",
        "counter",
        "CPU time of a virtual machine's vCPU, counted from when we saw it first.",
        [(given, seconds(each.consumed_ns)) for given, each in domains],
    )
    yield family(
        "libvirt_domain_vcpu_delay_seconds_total",
        "counter",
        "Time that a virtual machine's vCPU waited in the run queue, counted from when we saw it first.",
        [(given, seconds(each.ready_ns)) for given, each in domains],
    )
