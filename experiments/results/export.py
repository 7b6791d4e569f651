"""The numbers of a folder of results as JSON and CSV."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from dasec.lab.kit.finite import finite
from dasec.lab.load_tool import PERCENTILES

from ..plan.points import Cell
from .folder import Results
from .rows import Row

RUNS, COMPARISONS, DOCUMENT = "runs.csv", "comparisons.csv", "results.json"


def export(results: Results) -> tuple[Path, ...]:
    """Write all three beside the raw results."""
    document = results.folder / DOCUMENT
    document.write_text(json.dumps(_document(results), indent=1) + "\n", encoding="utf-8")
    return (
        document,
        _write(results.folder / RUNS, _runs(results)),
        _write(results.folder / COMPARISONS, _comparisons(results.rows)),
    )


def _write(file: Path, rows: Iterable[Mapping[str, object]]) -> Path:
    table = list(rows)
    with file.open("w", encoding="utf-8", newline="") as target:
        writer = csv.DictWriter(target, list(table[0]) if table else [])
        writer.writeheader()
        writer.writerows(table)
    return file


def _runs(results: Results) -> Iterator[dict[str, object]]:
    """One line for each instance in each run."""
    for row in results.whole:
        workload_of = {one.name: one.workload.called for one in row.cell.instances}
        for block in row.blocks:
            for run in block.runs:
                for tenant in run.tenants:
                    served = tenant.latencies.count
                    yield {
                        **_place(row),
                        "repetition": block.repetition,
                        "arm": run.arm,
                        "instance": tenant.name,
                        "workload": workload_of[tenant.name],
                        "requests": served,
                        "mean_ms": tenant.latencies.mean_ns / 1e6 if served else "",
                        **{f"{name}_ms": tenant.value(name) / 1e6 if served else "" for name in PERCENTILES},
                        "throughput_per_s": tenant.throughput_per_s,
                        "unfinished": tenant.unfinished,
                        "errors": tenant.errors,
                        "cores": tenant.cores,
                        "blame_s": "" if tenant.blame_s is None else tenant.blame_s,
                        "busy": run.busy,
                        "other_cores": run.other_cores,
                        "steal": run.steal,
                        "daemon_cpu_s": run.daemon_cpu_s,
                        "seconds": run.seconds,
                        "interrupted": block.interrupted,
                    }


def _comparisons(rows: Sequence[Row[Cell]]) -> Iterator[dict[str, object]]:
    """One line for each metric of each arm beside the plain host."""
    for row in rows:
        for arm, compared in row.summary.arms.items():
            for metric, effect in compared.ratios.items():
                yield {
                    **_place(row),
                    "part": row.part,
                    "arm": arm,
                    "metric": metric,
                    "over_none": effect.ratio,
                    "low": effect.low,
                    "high": effect.high,
                    "worst_control": row.summary.spread.get(metric, ""),
                    "repetitions": row.summary.repetitions,
                    "verdict": compared.verdict or "",
                }


def _place(row: Row[Cell]) -> dict[str, object]:
    cell = row.cell
    return {
        "cell": cell.name,
        "mix": cell.mix,
        "ratio": cell.ratio,
        "rate_factor": cell.rate_factor,
        "layout": cell.layout,
        "place": cell.place,
    }


def _document(results: Results) -> dict[str, object]:
    return {
        "experiment": results.experiment.model_dump(mode="json"),
        "host": results.asked.host,
        "conditions": asdict(results.conditions),
        "rows": finite([_row(row) for row in results.rows]),
    }


def _row(row: Row[Cell]) -> dict[str, object]:
    plain = asdict(row.summary)
    plain["cell"] = _place(row)
    return {"part": row.part, **plain}
