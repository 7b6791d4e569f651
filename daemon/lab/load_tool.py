"""Runs the native load tool (experiments/load) and adds HDR histograms, which merge, to its results."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from ..errors import ExitStatus, Refusal

TOOL = "dasec-load"
TOOL_ENVIRONMENT = "DASEC_LOAD"
CHECKOUT_TOOL = Path(__file__).resolve().parent.parent.parent / "experiments" / "load" / "build" / TOOL

LOWEST_NS, HIGHEST_NS, DIGITS = 1_000, 3_600_000_000_000, 3
"""The histograms' range and precision: 1 us to 1 hour, each value within 0.1 %. Shared by all, so that
any two can be added."""

SAMPLE_WORDS, SOJOURN = 3, 2
"""A sample is queue, service and sojourn, in nanoseconds, as uint64 (TailBench's lats.bin)."""

OURS = frozenset({"--out", "--samples", "--ready"})
"""Options of the tool that `run` gives it."""

INEXACT = 1e-9
"""Of a rank that floating point has made, as in the load tool."""

PERCENTILES = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p999": 99.9}


def find_tool(environment: Mapping[str, str] = os.environ) -> Path:
    """The load tool: where DASEC_LOAD says, in the checkout that we run from, or in PATH."""
    named = environment.get(TOOL_ENVIRONMENT)
    if named:
        if not os.access(named, os.X_OK):
            raise Refusal(ExitStatus.USAGE, f"{TOOL_ENVIRONMENT}: {named}: is not an executable file")
        return Path(named)
    found = CHECKOUT_TOOL if CHECKOUT_TOOL.exists() else shutil.which(TOOL, path=environment.get("PATH"))
    if found is None:
        raise Refusal(
            ExitStatus.HOST,
            f"{TOOL}: not found: build it with `make load` in a clone; outside of it name"
            f" experiments/load/build/{TOOL} of that clone in {TOOL_ENVIRONMENT}",
        )
    return Path(found)


def read_sojourns(samples: Path) -> array[int]:
    """The sojourn times of a samples file, in nanoseconds."""
    words = array("Q", samples.read_bytes())
    if sys.byteorder == "big":
        words.byteswap()
    if len(words) % SAMPLE_WORDS:
        raise Refusal(ExitStatus.FAILED, f"{samples}: {len(words)} words: is not a whole number of samples")
    return words[SOJOURN::SAMPLE_WORDS]


@dataclass(frozen=True, slots=True)
class Latencies:
    """A histogram's figures, in nanoseconds, and the histogram itself as compressed base64 (V2)."""

    hdr: str
    count: int
    mean_ns: float
    percentiles_ns: Mapping[str, int]


def latencies(values: Iterable[int]) -> Latencies:
    """The histogram of latencies in nanoseconds; what lies outside the range counts at its end."""
    from hdrh.histogram import HdrHistogram

    histogram = HdrHistogram(LOWEST_NS, HIGHEST_NS, DIGITS)
    for value in values:
        histogram.record_value(min(value, HIGHEST_NS))
    return _figures(histogram.encode().decode("ascii"))


def merged(hdrs: Sequence[str]) -> Latencies:
    """All histograms in one: the counts add up."""
    from hdrh.histogram import HdrHistogram

    total = HdrHistogram(LOWEST_NS, HIGHEST_NS, DIGITS)
    for hdr in hdrs:
        total.decode_and_add(hdr)
    return _figures(total.encode().decode("ascii"))


def _figures(hdr: str) -> Latencies:
    from hdrh.histogram import HdrHistogram

    histogram = HdrHistogram.decode(hdr)
    count = int(histogram.get_total_count())
    values_ns = percentile_curve(hdr, tuple(PERCENTILES.values()))
    mean_ns = float(histogram.get_mean_value()) if count else 0.0
    return Latencies(hdr, count, mean_ns, dict(zip(PERCENTILES, values_ns, strict=True)))


def percentile_curve(hdr: str, percentiles: Sequence[float]) -> tuple[int, ...]:
    """The latencies at these percentiles, in nanoseconds: the smallest that so many of all do not exceed, as
    the load tool has it (experiments/load/src/summary.c); 0 of nothing. The library would round the rank, and
    call the 59th of 60 their p99; so it is asked for a rank."""
    from hdrh.histogram import HdrHistogram

    histogram = HdrHistogram.decode(hdr)
    count = int(histogram.get_total_count())
    if count == 0:
        return (0,) * len(percentiles)
    ranks = (max(1, math.ceil(percentile * count / 100 - INEXACT)) for percentile in percentiles)
    return tuple(int(histogram.get_value_at_percentile(100 * rank / count)) for rank in ranks)


def summary(figures: Latencies) -> dict[str, object]:
    """The figures under the names that the load tool uses."""
    return {"count": figures.count, "mean": figures.mean_ns, **figures.percentiles_ns}


def run(arguments: Sequence[str]) -> dict[str, object]:
    """Run the load tool to its end; its result, with `hdr` where the subcommand has samples."""
    for option in OURS & {argument.partition("=")[0] for argument in arguments}:
        raise Refusal(
            ExitStatus.USAGE, f"load: {option}: is set here: redirect the output, or run {TOOL} itself"
        )
    with tempfile.TemporaryDirectory(prefix="dasec-load-") as folder:
        out, samples = Path(folder) / "out.json", Path(folder) / "samples"
        command = [str(find_tool()), *arguments, "--out", str(out)]
        if arguments and arguments[0] in ("service", "memcached"):
            command += ["--samples", str(samples), "--ready", str(Path(folder) / "ready")]
        status = subprocess.run(command, check=False).returncode
        if not out.exists() or not out.read_text(encoding="utf-8"):
            raise SystemExit(status)  # --help, or the tool has said why on standard error
        return with_histogram(read_result(out), samples)


def read_result(path: Path) -> dict[str, object]:
    """A result file: one JSON object."""
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Refusal(ExitStatus.USAGE, f"{path}: {error.strerror}: give a result file") from error
    except (ValueError, RecursionError) as error:
        raise Refusal(ExitStatus.USAGE, f"{path}: is not JSON: {error}") from error
    if not isinstance(result, dict):
        raise Refusal(ExitStatus.USAGE, f"{path}: is not a result of the load tool: no JSON object")
    return result


def with_histogram(result: Mapping[str, object], samples: Path) -> dict[str, object]:
    """The result and, where there are samples, its histogram: of as many requests as the result's latencies,
    as samples are of those alone that were answered."""
    if not samples.exists():
        return dict(result)
    values = read_sojourns(samples)
    if unanswered := int(figure(result, "latency_ns", "count")) - len(values):
        late_ns = int(figure(result, "parameters", "drain_seconds") * 1e9)
        values.extend([late_ns] * unanswered)
    return {**result, "hdr": latencies(values).hdr}


def merge(paths: Sequence[Path]) -> dict[str, object]:
    """One result of several: requests and histograms add up."""
    results = [read_result(path) for path in paths]
    hdrs = []
    for path, result in zip(paths, results, strict=True):
        hdr = result.get("hdr")
        if not isinstance(hdr, str):
            raise Refusal(
                ExitStatus.USAGE,
                f"{path}: hdr: missing: make it with `dasec load service` or `dasec load memcached`",
            )
        hdrs.append(hdr)
    try:
        figures = merged(hdrs)
    except Exception as error:  # the library raises its own and zlib's
        raise Refusal(
            ExitStatus.USAGE, f"hdr: cannot be decoded: {error}: was a result file damaged?"
        ) from error
    counts = {
        key: sum(int(figure(result, key)) for result in results)
        for key in ("completed", "errors", "unfinished")
    }
    return {
        "merged": [str(path) for path in paths],
        **counts,
        "latency_ns": summary(figures),
        "hdr": figures.hdr,
    }


def figure(result: Mapping[str, object], *path: str) -> float:
    """A number of a result, by the names on the way to it."""
    value: object = result
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise Refusal(
            ExitStatus.USAGE, f"{'.'.join(path)}: no such number in the load tool's result: rebuild it"
        )
    return value


PASS_ON = {"ignore_unknown_options": True, "allow_extra_args": True}
"""Settings of a command whose options are the load tool's business."""


@click.group("load")
def command() -> None:
    """Run the native load tool; print its result with an HDR histogram."""


def _add(subcommand: str, about: str) -> None:
    @command.command(subcommand, help=about, context_settings=PASS_ON, add_help_option=False)
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    def pass_on(arguments: tuple[str, ...]) -> None:
        click.echo(json.dumps(run([subcommand, *arguments])))


_add("service", "A request-serving workload with helpers and background work.")
_add("memcached", "An open-loop memcached client.")
_add("threads", "Many synthetic vCPU threads.")
_add("matrixmul", "Batch work whose main thread coordinates its workers.")
_add("wakeup", "Wake-up latency beside spinning threads on one core.")


@command.command("merge")
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=Path))
def merge_command(results: tuple[Path, ...]) -> None:
    """Add several results up."""
    click.echo(json.dumps(merge(results)))
