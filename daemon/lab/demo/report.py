"""The result as text: all workloads together, each of them, and how far to trust it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from ..load_tool import merged
from .arms import CONTROL, NONE
from .comparison import LATENCIES, METRICS, Comparison, verdict_on
from .results import ALL, Measured, RunResult
from .statistics import CONFIDENCE, Verdict
from .tenant import DRAIN_S

STYLE = {Verdict.GAIN: "green", Verdict.HARM: "red", Verdict.NO_EFFECT: "", Verdict.UNDECIDED: "yellow"}
NS_PER_MS = 1e6
WIDE = 9.995
STEAL_WORTH_SAYING = 0.01
OTHER_WORTH_SAYING = 0.1
"""Cores; a quiet host with this display needs less."""


def print_report(console: Console, measured: Measured, comparisons: tuple[Comparison, ...]) -> None:
    """Both tables and the notes."""
    console.print(_pooled_table(measured, comparisons))
    for kind in measured.kinds:
        console.print(_kind_table(measured, comparisons, kind))
    for note in notes(measured, comparisons):
        console.print(note, highlight=False, soft_wrap=False)


def _pooled_table(measured: Measured, comparisons: tuple[Comparison, ...]) -> Table:
    headings = dict.fromkeys(METRICS, "")
    table = _table("All workloads: ratio to the plain host, with its 95 % confidence interval", headings)
    table.add_column("daemon\nCPU %", justify="right")
    table.add_column("verdict", min_width=len(Verdict.NO_EFFECT))
    for arm in measured.arms:
        ratios = ["1"] * len(METRICS)
        if arm != NONE:
            ratios = [_ratio(_find(comparisons, arm, ALL, name)) for name in METRICS]
        table.add_row(
            _label(arm), *ratios, _daemon_cell(measured.of(arm)), _verdict_cell(arm, comparisons, ALL)
        )
    return table


def _kind_table(measured: Measured, comparisons: tuple[Comparison, ...], kind: str) -> Table:
    count = len(measured.tenants_of(kind))
    headings = {**dict.fromkeys(LATENCIES, "ms"), "throughput": "1/s each", "CPU": "cores each"}
    table = _table(f"{kind} ({count}): all repetitions together, and the ratio as above", headings)
    table.add_column("verdict", min_width=len(Verdict.NO_EFFECT))
    for arm in measured.arms:
        cells = [*_latency_cells(measured, arm, kind), *_each(measured, arm, kind)]
        if arm != NONE:
            ratios = [_ratio(_find(comparisons, arm, kind, name)) for name in METRICS]
            cells = [f"{cell}\n{ratio}" for cell, ratio in zip(cells, ratios, strict=True)]
        table.add_row(_label(arm), *cells, _verdict_cell(arm, comparisons, kind))
    return table


def _table(title: str, headings: Mapping[str, str]) -> Table:
    table = Table(
        title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0)
    )
    table.add_column("arm")
    for name, unit in headings.items():
        table.add_column(f"{name}\n{unit}".strip(), justify="right", overflow="fold")
    return table


def _latency_cells(measured: Measured, arm: str, kind: str) -> list[str]:
    together = merged(measured.histograms(arm, kind))
    values = [together.mean_ns, *(together.percentiles_ns[name] for name in LATENCIES[1:])]
    return [f"{value / NS_PER_MS:.3f}" for value in values]


def _each(measured: Measured, arm: str, kind: str) -> tuple[str, str]:
    tenants = measured.tenants_of(kind)
    throughput = [_mean(measured.values(arm, tenant, "throughput")) for tenant in tenants]
    cores = [_mean(measured.values(arm, tenant, "CPU")) for tenant in tenants]
    return f"{_mean(throughput):.0f}", f"{_mean(cores):.2f}"


def _daemon_cell(runs: Sequence[RunResult]) -> str:
    return f"{100 * _mean([run.daemon_cpu_s / run.seconds for run in runs]):.2f}"


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _label(arm: str) -> str:
    return {NONE: "none\n(plain)", CONTROL: "none-again\n(A/A)"}.get(arm, arm)


def _verdict_cell(arm: str, comparisons: tuple[Comparison, ...], workload: str) -> str:
    if arm in (NONE, CONTROL):
        return ""
    verdict = verdict_on(arm, comparisons, workload)
    style = STYLE[verdict]
    return f"[{style}]{verdict}[/{style}]" if style else str(verdict)


def _find(comparisons: tuple[Comparison, ...], arm: str, workload: str, metric: str) -> Comparison:
    wanted = (arm, workload, metric)
    return next(one for one in comparisons if (one.arm, one.workload, one.metric) == wanted)


def _ratio(comparison: Comparison) -> str:
    found = comparison.estimate
    return f"{_short(found.ratio)}\n{_short(found.low)}–{_short(found.high)}"


def _short(ratio: float) -> str:
    """No wider than a column: two decimals mean nothing on a ratio of ten."""
    return f"{ratio:.2f}" if ratio < WIDE else f"{ratio:.0f}"


def notes(measured: Measured, comparisons: tuple[Comparison, ...]) -> list[str]:
    """How far to trust the tables, line by line."""
    spread = {metric: _find(comparisons, CONTROL, ALL, metric).control_spread for metric in ("mean", "p99")}
    busy = _mean([run.busy for run in measured.of(NONE)])
    client = _mean([run.client_cpu_s / run.seconds for run in measured.runs])
    lines = [
        f"{measured.repetitions} repetitions, paired by their arrivals; CI: bootstrap, {CONFIDENCE:.0%};"
        " latency below 1 is better.",
        "Verdict, on mean and p99: gain or harm only if the CI excludes 1 and the effect exceeds the worst"
        " A/A repetition.",
        f"The plain host differs from itself by a factor of up to {spread['mean']:.2f} (mean) and"
        f" {spread['p99']:.2f} (p99): smaller effects cannot be seen here.",
        f"Cores busy {busy:.0%} without a policy; the load generator took {client:.2f} cores;"
        " the daemon's CPU % is of one core.",
    ]
    lines += [line for arm in measured.arms for line in _losses(measured, arm)]
    other = [run.other_cores for run in measured.runs]
    if max(other) > OTHER_WORTH_SAYING:
        lines.append(
            f"Other work on this host took {_mean(other):.2f} cores on average and {max(other):.2f} in the"
            " worst run: that is noise."
        )
    stolen = max(run.steal for run in measured.runs)
    if stolen > STEAL_WORTH_SAYING:
        lines.append(f"The hypervisor took up to {stolen:.1%} of the CPU time in a run: that is noise, too.")
    return lines


def _losses(measured: Measured, arm: str) -> Iterator[str]:
    tenants = [tenant for run in measured.of(arm) for tenant in run.tenants]
    if unfinished := sum(tenant.unfinished for tenant in tenants):
        late = f"{DRAIN_S:g} s"
        yield f"{arm}: {unfinished} requests had no answer {late} after the last arrival and count as {late}."
    if errors := sum(tenant.errors for tenant in tenants):
        yield f"{arm}: {errors} requests failed; they have no latency."
