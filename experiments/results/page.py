"""The report: one page that needs nothing else, with its pictures in it."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

from dasec.lab.kit.arms import CONTROL, NONE
from dasec.lab.kit.ratios import CONFIDENCE, Estimate

from ..plan.oracle import ORACLE
from ..plan.points import Cell
from ..run import knobs
from .analysis import JUDGED, PACE
from .effects import effect
from .folder import Results
from .occasions import Occasions, occasions
from .pictures import Picture, draw
from .rows import ALL, Row, host_line

PAGE = "report.html"
STYLE = """body{font:15px/1.45 sans-serif;max-width:75em;margin:2em auto;padding:0 1em}
table{border-collapse:collapse;margin:1em 0;font-size:13px}
th,td{border:1px solid #ccc;padding:.25em .5em;text-align:left}
th{background:#f2f2f2}blockquote{border-left:3px solid #999;margin-left:0;padding-left:1em;color:#333}
img{max-width:100%}.gap{background:#fff3cd}"""


def write_page(results: Results) -> Path:
    """Write it beside the results."""
    waiting = _waiting(results)
    page = results.folder / PAGE
    page.write_text(html(results.experiment.title, _body(results, waiting)), encoding="utf-8")
    return page


def html(title: str, body: Iterable[str]) -> str:
    """A whole page."""
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{STYLE}</style>'
    return (
        f'<!doctype html><html lang="en"><head>{head}</head><body>\n' + "\n".join(body) + "\n</body></html>\n"
    )


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], css: str = "") -> str:
    """Cells are text."""
    top = "".join(f"<th>{escape(one)}</th>" for one in columns)
    lines = "".join("<tr>" + "".join(f"<td>{escape(one)}</td>" for one in row) + "</tr>\n" for row in rows)
    return f'<table class="{css}"><tr>{top}</tr>\n{lines}</table>'


def _waiting(results: Results) -> Mapping[str, Mapping[str, Occasions]]:
    """Of each cell and arm that has records with occasions."""
    found: dict[str, dict[str, Occasions]] = {}
    for row in results.whole:
        names = frozenset(one.name for one in row.cell.instances)
        for arm in results.experiment.arms:
            seen = occasions(results.records(row.cell, arm), names)
            if seen.total:
                found.setdefault(row.cell.name, {})[arm] = seen
    return found


def _body(results: Results, waiting: Mapping[str, Mapping[str, Occasions]]) -> Iterator[str]:
    wish, host = results.experiment, results.asked.host
    yield f"<h1>{escape(wish.title)}</h1>"
    if wish.claim:
        yield f"<blockquote>{escape(wish.claim)} <cite>({escape(wish.source)})</cite></blockquote>"
    yield (
        f"<p>{escape(host_line(host))}; ratios are of {wish.cores} cores; seed {wish.seed};"
        f" {wish.seconds:g} s measured after {wish.warmup_s:g} s of warm-up, {wish.repetitions} repetitions"
        " asked, arms of a repetition interleaved, with the same arrivals. Ratios are to the plain host of"
        f" the same repetition: geometric means with {CONFIDENCE:.0%} bootstrap intervals; below 1 is better,"
        " but for throughput."
        f" <code>{CONTROL}</code> is the plain host once more: noise.</p>"
    )
    yield from _gaps(results)
    if results.rows:
        yield from ("<h2>Beside the plain host</h2>", _latencies(results))
        yield from ("<h2>As measured</h2>", _absolute(results))
        yield from ("<h2>What else changed</h2>", _side(results))
        yield from ("<h2>Knobs at the end of a run</h2>", _knobs(results))
    if waiting:
        yield from ("<h2>Threads that wait while others are ready</h2>", _occasions(waiting))
    if results.rows:
        yield from ("<h2>How far to trust it</h2>", _trust(results))
    troubles = [f"{row.cell.name}, {line}" for row in results.whole for line in row.summary.troubles]
    yield from (f"<p>{escape(line)}</p>" for line in troubles)
    yield from (_figure(one) for one in draw(results, waiting))


def _gaps(results: Results) -> Iterator[str]:
    """What is not there, and why; never a silent hole."""
    conditions = results.conditions
    rows = [(gap.what, gap.why) for gap in conditions.gaps]
    measured = {row.cell.name for row in results.whole}
    undefined = [row.cell.name for row in results.whole if ORACLE not in row.arms]
    if ORACLE in results.experiment.arms and undefined:
        why = "no driver there says which threads are critical"
        rows.append((f"{ORACLE} in {', '.join(undefined)}", why))
    rows += [("precondition not met", line) for line in conditions.missed]
    few = [one for one in results.whole if one.summary.repetitions < results.experiment.repetitions]
    rows += [(one.cell.name, f"only {one.summary.repetitions} repetitions so far") for one in few]
    if not measured:
        rows.append(("everything", "no block is finished"))
    yield "<h2>Not measured</h2>"
    yield table(("what", "why"), rows, "gap") if rows else "<p>Nothing that was asked for is missing.</p>"


def _where(row: Row[Cell]) -> tuple[str, ...]:
    return (row.cell.name, row.part)


def _others(results: Results, row: Row[Cell]) -> list[str]:
    return [arm for arm in results.experiment.arms if arm != NONE and arm in row.arms]


def _latencies(results: Results) -> str:
    rows = []
    for row in results.rows:
        for arm in _others(results, row):
            one = row.summary.arms[arm]
            effects = [effect(one.ratios.get(metric)) for metric in (*JUDGED, "throughput")]
            judged = "A/A" if arm == CONTROL else str(one.verdict or "–")
            rows.append((*_where(row), arm, *effects, judged))
    return table(("cell", "of", "arm", *JUDGED, "throughput", "verdict"), rows)


def _absolute(results: Results) -> str:
    rows = []
    for row in results.rows:
        for arm in (NONE, *_others(results, row)):
            times = [_number(row.absolute(arm, metric), 1e6) for metric in ("mean", "p50", "p95", "p99")]
            mixed = row.part == ALL and len(row.cell.parts) > 1
            rate = "–" if mixed else _number(row.absolute(arm, "throughput"), 1.0)
            busy = [block.of(arm).busy for block in row.blocks]
            rows.append((*_where(row), arm, *times, rate, f"{sum(busy) / len(busy):.0%}"))
    columns = ("mean ms", "p50 ms", "p95 ms", "p99 ms", "done/s, an instance", "CPU use of the host")
    return table(("cell", "of", "arm", *columns), rows)


def _number(found: Estimate | None, unit: float) -> str:
    return "–" if found is None else f"{found.ratio / unit:.3g}"


def _side(results: Results) -> str:
    rows = []
    for row in results.rows:
        for arm in _others(results, row):
            one = row.summary.arms[arm]
            counts = [block.of(arm).decided for block in row.blocks]
            names = dict.fromkeys(name for each in counts for name in each)
            told = ", ".join(f"{name} {sum(each.get(name, 0) for each in counts)}" for name in names)
            ratios = (effect(one.ratios.get("CPU")), effect(one.ratios.get("blame")))
            least = f"{one.least_cpu:.2f}"
            rows.append((*_where(row), arm, *ratios, least, f"{100 * one.daemon_cpu:.2f}", told or "–"))
    columns = ("CPU", "blame", "least CPU", "daemon's CPU %", "decided, all runs")
    return table(("cell", "of", "arm", *columns), rows)


def _knobs(results: Results) -> str:
    """Of each arm, the plain host's too: so that a difference is seen to be the policy's."""
    rows = []
    for row in results.whole:
        for arm in (NONE, *_others(results, row)):
            found = knobs.spread(
                [knobs.read(one) for one in results.raw(row.cell, arm)], results.experiment.cores
            )
            if found:
                slices = f"{found.least_slice_ms:.2g} – {found.most_slice_ms:.2g}"
                weights = "–" if found.weight_ratio is None else f"{found.weight_ratio:.3g}"
                rows.append((row.cell.name, arm, weights, slices, f"{found.pinned:.0%}"))
    return table(("cell", "arm", "weights, largest / smallest", "slice, ms", "threads pinned"), rows)


def _occasions(waiting: Mapping[str, Mapping[str, Occasions]]) -> str:
    rows = [
        (cell, arm, str(one.looks), str(one.total), f"{one.mean:.2f}")
        for cell, by_arm in waiting.items()
        for arm, one in by_arm.items()
    ]
    return table(("cell", "arm", "looks", "occasions", "waiting threads, mean"), rows)


def _trust(results: Results) -> str:
    rows = []
    for row in results.rows:
        one = row.summary
        spread = ", ".join(f"{name} {one.spread[name]:.2f}" for name in (*JUDGED, PACE) if name in one.spread)
        mended = sum(block.interrupted for block in row.blocks)
        told = (str(one.repetitions), spread, f"{one.other_cores:.2f}", f"{one.steal:.1%}", str(mended))
        rows.append((*_where(row), *told))
    columns = ("repetitions", "worst A/A", "other work, cores", "stolen, worst run", "interrupted within")
    return table(("cell", "of", *columns), rows)


def _figure(one: Picture) -> str:
    data = base64.b64encode(one.png).decode("ascii")
    return f'<h2>{escape(one.title)}</h2><img alt="{escape(one.title)}" src="data:image/png;base64,{data}">'
