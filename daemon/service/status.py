"""What the running daemon says of itself: the file that it replaces once a second, read and shown."""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import NamedTuple, TypedDict, cast

from ..linux import procfs, regular_file
from ..linux.errors import ThreadGone
from ..linux.printable import printable
from ..safety.host_lock import elsewhere
from ..safety.journal.directory import in_use

FILE_NAME = "status.json"
INTERVAL_NS = 1_000_000_000

STALE_NS = 5_000_000_000
"""A daemon that has not reported for five intervals hangs, or its directory is full."""


SHOWN = 3
"""Of the vCPUs that used a limit up, or that their own stopped: the line must stay one."""

POLICY_OFF = "policy off"
"""Is in the guard's word on a workload that it keeps the policy off (policy_alerts.py)."""

ABOVE_BUDGET = "above budget_percent"
"""Is in the trouble of a daemon that takes too much (host_alerts.py)."""


class WorkloadStatus(TypedDict):
    """One workload as `dasec status` shows it. `left_out`: how many more threads it has than there is room
    for; `unheard`: how many managed ones have no slot for their wake-ups. `limit_ppm`: its tightest CPU limit
    in millionths of a core, 0: none known; `throttled_ms`: for how long that stopped threads since the daemon
    started; `used_up_by`: of what was used meanwhile the percentage of each vCPU; `stopped_ms`: for how long
    its own quota or cap stopped each; `capped`: vCPUs with a cap below the limit; `spared_ms`: for so long it
    would have stopped all without them (bandwidth/costs.py). `reserved`: the class and the CPUs of its
    reservation."""

    name: str
    vcpus: int
    share: int
    guard: str
    left_out: int
    unheard: int
    limit_ppm: int
    throttled_ms: int
    used_up_by: list[tuple[str, int]]
    stopped_ms: list[tuple[str, int]]
    spared_ms: int
    capped: int
    reserved: str


class Status(TypedDict):
    """What `dasec status --json` prints. Times are of CLOCK_MONOTONIC. `cores`: who holds which, where
    anything is reserved. `waits_for_budget`: whether the policy can look later, and so keeps the budget."""

    pid: int
    start_ticks: int
    started_ns: int
    written_ns: int
    policy: str
    period_ms: int
    dry_run: bool
    record: str | None
    capabilities: Mapping[str, object]
    workloads: list[WorkloadStatus]
    cores: list[tuple[str, str]]
    wakeups_lost: int
    wakeups_missed: int
    knobs_held: Mapping[str, int]
    changes_by_rule: Mapping[str, int]
    outcomes: Mapping[str, int]
    periods: int
    late_periods: int
    violations: int
    mean_period_us: int
    longest_period_us: int
    own_cpu_percent: float
    budget_percent: float
    waits_for_budget: bool
    look_ms: int
    troubles: list[str]
    reloads: int
    not_reloaded: list[str]


class Absent(NamedTuple):
    """No running daemon, and why we think so."""

    why: str


def read(directory: str | PathLike[str], now_ns: int) -> Status | Absent:
    """What the daemon of `directory` last said of itself."""
    path = f"{fspath(directory)}/{FILE_NAME}"
    try:
        with regular_file.opened(path) as file:
            status = cast(Status, json.loads(file.read()))
        pid = int(status["pid"])
        age_ns = now_ns - int(status["written_ns"])
        alive = procfs.read_stat(pid, pid).start_ticks == status["start_ticks"]
    except FileNotFoundError:
        return Absent(_no_status(Path(directory), path))
    except (ValueError, OverflowError, KeyError, TypeError, AttributeError, RecursionError):
        return Absent(f"{path}: is not a status file: remove it, or give the daemon's own directory")
    except PermissionError as error:
        return Absent(f"{path}: {error.strerror}: run as the daemon's user")
    except OSError as error:
        return Absent(f"{path}: {error.strerror}: remove it, or give the daemon's own directory")
    except ThreadGone:
        alive = False
    if not alive:
        return Absent(f"no daemon runs: process {pid} is gone: `dasec restore` puts its knobs back")
    if age_ns > STALE_NS:
        return Absent(f"the daemon (process {pid}) has said nothing for {age_ns // 10**9} s")
    if not _is_of_this_version(status):
        return Absent(f"{path}: is of another version: use the `dasec` that the daemon (process {pid}) is of")
    return status


def _is_of_this_version(status: Status) -> bool:
    """Whether all is there that is shown of it, whichever version the daemon is of."""
    from ..model import Knob

    shown = {"backend", "wake_edges_note", *(f"{knob.value}_note" for knob in Knob)}
    try:
        return (
            Status.__required_keys__ <= status.keys()
            and shown <= status["capabilities"].keys()
            and all(WorkloadStatus.__required_keys__ <= one.keys() for one in status["workloads"])
        )
    except (TypeError, AttributeError):  # no tables where there were some
        return False


def _no_status(directory: Path, path: str) -> str:
    if _in_use(directory):
        return f"a daemon starts or ends: {path} does not exist now: ask again in some seconds"
    other = elsewhere(directory)
    if other is not None and _in_use(other):
        return f"the daemon of this host is not in {directory}: ask it with `--directory {other}`"
    return f"no daemon runs: {path} does not exist: start one with `dasec run --config FILE`"


def _in_use(directory: Path) -> bool:
    try:
        return in_use(directory)
    except OSError:
        return False


def complaints(status: Status) -> tuple[str, ...]:
    """What keeps this daemon from being in order, a line each: what whoever rolls it out waits for."""
    return (
        *(f"trouble: {trouble}" for trouble in status["troubles"]),
        *(f"not reloaded: {line}" for line in status["not_reloaded"]),
        *(f"guard: {w['name']}: {w['guard']}" for w in status["workloads"] if POLICY_OFF in w["guard"]),
        *((f"{status['violations']} violations of an invariant",) if status["violations"] else ()),
    )


def render(status: Status) -> str:
    """The status for a person."""
    from ..model import Knob

    capabilities = status["capabilities"]
    lines = [
        f"policy {status['policy']}{' (dry run)' if status['dry_run'] else ''} on {capabilities['backend']},"
        f" process {status['pid']}, every {status['period_ms']} ms",
        f"periods {status['periods']} ({status['late_periods']} late),"
        f" work {status['mean_period_us']} us on average, {status['longest_period_us']} us at most,"
        f" own CPU {status['own_cpu_percent']} % of a core,"
        f" a look every {status['look_ms']} ms ({_bound(status)})",
        *(
            f"workload {w['name']}: {w['vcpus']} vCPUs, share {w['share']}"
            + (f", {w['left_out']} more threads left alone" if w["left_out"] else "")
            + (f", wake-ups of {w['unheard']} not counted" if w["unheard"] else "")
            + (f", reserved {w['reserved']}" if w["reserved"] else "")
            + _limit(w)
            + (f", guard: {w['guard']}" if w["guard"] else "")
            for w in status["workloads"]
        ),
        *(f"cores {cpus}: {holders}" for cpus, holders in status["cores"]),
        "knobs held: " + _counts(status["knobs_held"]),
        "changes by rule: " + _counts(status["changes_by_rule"]),
        "outcomes: " + _counts(status["outcomes"]),
        *(f"{knob.value.replace('_', ' ')}: {capabilities[f'{knob.value}_note']}" for knob in Knob),
        f"wake edges: {capabilities['wake_edges_note']}",
        *_not_counted(status["wakeups_lost"], status["wakeups_missed"]),
        *(f"trouble: {trouble}" for trouble in status["troubles"]),
        *(f"not reloaded: {line}" for line in status["not_reloaded"]),
    ]
    return "\n".join(map(printable, lines))


def _limit(workload: WorkloadStatus) -> str:
    """Its CPU limit, in words."""
    if not workload["limit_ppm"]:
        return ""
    from ..bandwidth.costs import in_words

    cores, stopped_s = workload["limit_ppm"] / 1e6, workload["throttled_ms"] / 1e3
    used_up, spared_s = workload["used_up_by"], workload["spared_ms"] / 1e3
    by_own = [(name, ms // 1000) for name, ms in workload["stopped_ms"] if ms >= 1000]
    return (
        f", limit {cores:g} cores stopped threads for {stopped_s:.1f} s"
        + (f" (used up by {in_words(used_up, '%', SHOWN)})" if used_up else "")
        + f", {workload['capped']} vCPUs capped below it"
        + (f", without which it would have stopped all for {spared_s:.1f} s" if spared_s else "")
        + (f", their own quotas stopped {in_words(by_own, 's', SHOWN)}" if by_own else "")
    )


def _bound(status: Status) -> str:
    """What the daemon may take, in words."""
    if not status["waits_for_budget"]:
        return "without a budget: this policy must look every period"
    return f"budget {status['budget_percent']:g} % of a core"


def _not_counted(lost: int, missed: int) -> tuple[str, ...]:
    """Wake-ups that no policy heard of, in words."""
    return (f"wake-ups not counted: {lost} lost, {missed} missed",) if lost or missed else ()


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "none"
