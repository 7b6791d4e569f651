"""What a control period costs: the real daemon, beside real threads, at its real pace."""

from __future__ import annotations

import contextlib
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, NotRequired, TypedDict

from ...errors import ExitStatus, Refusal
from ...linux import procfs
from ..kit.errors import undisturbed
from .burners import Burden, burden, burning

PERIOD_S = 0.08
WARM_S = 25 * PERIOD_S
"""Time before the measurement: adopting threads and making groups is not what a period costs."""

START_PATIENCE_S = 60.0
STOP_PATIENCE_S = 60.0
POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class Overhead:
    """The cost of one size. Times are wall times of a period's work; CPU is that of the daemon's process."""

    policy: str
    vcpus: int
    workloads: int
    periods: int
    cpu_percent_of_one_core: float
    cpu_us_per_period: float
    period_mean_ms: float
    period_p99_ms: float
    period_max_ms: float
    rss_mib: float
    keeper_rss_mib: float
    stage_mean_us: dict[str, float]
    active_fraction: float
    load_percent_of_host: float
    changes_per_period: float
    late_periods: int
    look_every_ms: float
    budget_percent: float | None
    start_cpu_s: float
    fan_out: bool
    burst_us: float
    bursts_per_s_per_vcpu: float
    dry_run: bool


class Instant(NamedTuple):
    """What the kernel says at one instant."""

    clock_ns: int
    daemon_cpu_ns: int


class RecordLine(TypedDict):
    """What we want of a line of the record."""

    clock_ns: int
    late_periods: NotRequired[int]
    usage: list[list[int]]
    results: NotRequired[list[list[object]]]
    stages_ns: dict[str, int]


def measure(
    vcpus: int,
    periods: int,
    active: float | None,
    policy: str,
    budget_percent: float | None = None,
    *,
    fan_out: bool = False,
) -> Overhead:
    """Start the load and the daemon, watch it for so many periods, end both."""
    load = burden(vcpus, active, PERIOD_S, len(os.sched_getaffinity(0)), fan_out=fan_out)
    dry_run = os.geteuid() != 0
    with tempfile.TemporaryDirectory(prefix="dasec-bench-") as folder, burning(load) as workloads:
        directory = Path(folder)
        record = directory / "record"
        settings = configuration(policy, workloads, own_cgroups=not dry_run, budget_percent=budget_percent)
        (directory / "dasec.toml").write_text(settings)
        with _daemon(directory, dry_run) as pid:
            _wait(lambda: lines_of(record) > 1, START_PATIENCE_S, directory)
            _look_after(WARM_S, record, directory)
            before = sample(pid)
            _look_after(periods * PERIOD_S, record, directory)
            after = sample(pid)
            rss = rss_mib(pid), sum(map(rss_mib, children(pid)))
        lines = [json.loads(line) for line in record.read_bytes().splitlines()[1:]]
    seen: list[RecordLine] = [line for line in lines if before.clock_ns < line["clock_ns"] <= after.clock_ns]
    if not seen:
        raise Refusal(ExitStatus.FAILED, "the record holds none of the periods measured: run it again")
    return _overhead(policy, load, dry_run, budget_percent, seen, before, after, rss)


def configuration(
    policy: str,
    workloads: Sequence[tuple[int, ...]],
    *,
    own_cgroups: bool,
    budget_percent: float | None = None,
) -> str:
    """The daemon's configuration: one workload a process."""
    lines = [f"policy = {json.dumps(policy)}"]
    lines += [] if budget_percent is None else [f"budget_percent = {budget_percent}"]
    lines += ["[host]", f"own_cgroups = {json.dumps(own_cgroups)}"]
    lines += ["[record]", "max_mib = 65536"]
    for number, pids in enumerate(workloads):
        lines += ["[[workload]]", f'name = "bench-{number}"', f"pids = {list(pids)}", "share = 1024"]
    return "\n".join(lines) + "\n"


def _overhead(
    policy: str,
    load: Burden,
    dry_run: bool,
    budget_percent: float | None,
    seen: Sequence[RecordLine],
    before: Instant,
    after: Instant,
    rss: tuple[float, float],
) -> Overhead:
    """The figures of the periods seen between two samples."""
    works_ms = [sum(line["stages_ns"].values()) / 1e6 for line in seen]
    wall_ns = after.clock_ns - before.clock_ns
    cpu_ns = after.daemon_cpu_ns - before.daemon_cpu_ns
    awake = [sum(1 for row in line["usage"] if row[3]) for line in seen]
    busy_ns = sum(row[1] for line in seen for row in line["usage"])
    return Overhead(
        policy=policy,
        vcpus=load.vcpus,
        workloads=load.workloads,
        periods=len(seen),
        cpu_percent_of_one_core=round(100 * cpu_ns / wall_ns, 3),
        cpu_us_per_period=round(cpu_ns / len(seen) / 1e3, 1),
        period_mean_ms=round(statistics.mean(works_ms), 3),
        period_p99_ms=round(percentile(works_ms, 0.99), 3),
        period_max_ms=round(max(works_ms), 3),
        rss_mib=rss[0],
        keeper_rss_mib=rss[1],
        stage_mean_us={
            stage.removesuffix("_ns"): round(
                statistics.mean(line["stages_ns"][stage] for line in seen) / 1e3, 1
            )
            for stage in seen[0]["stages_ns"]
        },
        active_fraction=round(statistics.mean(awake) / load.vcpus, 3),
        load_percent_of_host=round(100 * busy_ns / wall_ns / len(os.sched_getaffinity(0)), 1),
        changes_per_period=round(statistics.mean(len(line.get("results", ())) for line in seen), 2),
        late_periods=seen[-1].get("late_periods", 0) - seen[0].get("late_periods", 0),
        look_every_ms=round(wall_ns / len(seen) / 1e6, 1),
        budget_percent=budget_percent,
        start_cpu_s=round(before.daemon_cpu_ns / 1e9, 2),
        fan_out=load.fan_out,
        burst_us=round(load.burst_us, 1),
        bursts_per_s_per_vcpu=round(load.rate_hz, 3),
        dry_run=dry_run,
    )


def percentile(values: Sequence[float], part: float) -> float:
    """The smallest of the values that at least `part` of them do not exceed."""
    return sorted(values)[math.ceil(part * len(values)) - 1]


def sample(pid: int) -> Instant:
    """Clock and CPU time of all threads of a process."""
    tasks = procfs.thread_ids(pid)
    cpu_ns = sum(
        procfs.parse_schedstat(procfs.read_bytes(f"/proc/{pid}/task/{tid}/schedstat"))[0] for tid in tasks
    )
    return Instant(time.monotonic_ns(), cpu_ns)


def rss_mib(pid: int) -> float:
    """Resident memory of a process."""
    for line in procfs.read_bytes(f"/proc/{pid}/status").splitlines():
        if line.startswith(b"VmRSS:"):
            return round(int(line.split()[1]) / 1024, 1)
    return 0.0


def children(pid: int) -> list[int]:
    """The processes that a process started: for the daemon, its keeper."""
    return [int(child) for child in procfs.read_bytes(f"/proc/{pid}/task/{pid}/children").split()]


def lines_of(record: Path) -> int:
    """How far the daemon has come."""
    try:
        return record.read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


def last_line(directory: Path) -> str:
    """What the daemon said last."""
    lines = (directory / "log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"


@contextlib.contextmanager
def _daemon(directory: Path, dry_run: bool) -> Iterator[int]:
    """The daemon as its users start it; it must end well."""
    command = [sys.executable, "-P", "-m", "dasec", "run", "--config", str(directory / "dasec.toml")]
    command += ["--directory", str(directory / "state"), "--record", str(directory / "record")]
    command += ["--dry-run"] if dry_run else []
    with (directory / "log").open("wb") as log, contextlib.ExitStack() as stack:
        with undisturbed():
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            stack.callback(_stop, process)
        yield process.pid
    if process.returncode != 0:
        raise Refusal(
            ExitStatus.FAILED, f"dasec run: exit status {process.returncode}: {last_line(directory)}"
        )


def _stop(daemon: subprocess.Popen[bytes]) -> None:
    with undisturbed():
        daemon.terminate()
        daemon.wait(STOP_PATIENCE_S)


def _look_after(time_s: float, record: Path, directory: Path) -> None:
    """Wait for so long, and then for the next look, so that all samples are taken behind one."""
    time.sleep(time_s)
    lines = lines_of(record)
    _wait(lambda: lines_of(record) > lines, START_PATIENCE_S, directory)


def _wait(until: Callable[[], bool], patience_s: float, directory: Path) -> None:
    deadline_s = time.monotonic() + patience_s
    while not until():
        if time.monotonic() > deadline_s:
            raise Refusal(
                ExitStatus.FAILED, f"dasec run: no progress in {patience_s:g} s: {last_line(directory)}"
            )
        time.sleep(POLL_S)
