"""The kept runs: what each arm gave the services, or the target, and whoever was beside them."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

RESULTS = Path(__file__).resolve().parent / "results"

OTHERS = ("batch", "neighbour")
"""Whoever is beside the services, or the target."""

ARMS = {
    "none": "plain",
    "none-again": "plain again",
    "critical": "`critical`",
    "critical+caps": "`critical` with caps",
    "strict": "strict (rKube)",
    "strict:critical": "strict, `critical` within",
    "wysiwyg": "WYSIWYG",
    "scx": "`dasec scx`",
}


class Seen(NamedTuple):
    """One run. Of the services, or the target: means of mean and p99 in ms, requests a second, CPUs, and of
    these what background of their own had. CPUs of whoever is beside them."""

    mean_ms: float
    p99_ms: float
    requests: float
    target_cores: float
    background_cores: float
    other_cores: float

    @property
    def cores(self) -> float:
        """Of all workloads."""
        return self.target_cores + self.other_cores


def seen(run: Mapping[str, Any]) -> Seen:
    """As it was kept."""
    others = [one for one in run["tenants"] if one["name"].startswith(OTHERS)]
    targets = [one for one in run["tenants"] if one not in others]
    served = [one["latencies"] for one in targets if one["latencies"]["count"]]
    return Seen(
        statistics.mean(each["mean_ns"] for each in served) / 1e6 if served else 0.0,
        statistics.mean(each["percentiles_ns"]["p99"] for each in served) / 1e6 if served else 0.0,
        sum(one["throughput_per_s"] for one in targets),
        sum(one["cores"] for one in targets),
        sum(one["background_cores"] for one in targets),
        sum(one["cores"] for one in others),
    )


def kept(*names: str) -> Mapping[str, Mapping[str, Seen]]:
    """Every kept host of these files, by its name, with its arms; of several repetitions the first."""
    found: dict[str, Mapping[str, Seen]] = {}
    for name in names:
        for line in (RESULTS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            block = json.loads(line)
            host = block["cell"].rsplit("-", 3)[0]  # ratio, part that is requested, layout
            found.setdefault(host, {run["arm"]: seen(run) for run in block["runs"]})
    return found
