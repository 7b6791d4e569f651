"""The demo from its first look at the host to its last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console

from ...errors import ExitStatus, Refusal
from . import facts
from .comparison import compare
from .display import shown
from .document import document
from .errors import Interrupted
from .needs import capabilities, find_tools, find_tree
from .plot import draw
from .report import print_report
from .results import Measured
from .run import Plan, Tools, measure_all
from .sentinel import watching
from .signals import interruptible
from .tree import Tree
from .untouched import changes, look
from .workspace import DIRECTORY, lock, prepared, unlock


@dataclass(frozen=True, slots=True)
class Wish:
    """What to run, where the picture goes, and the daemon's records, if they are to be kept."""

    plan: Plan
    plot: Path
    records: Path | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result as JSON, and what of the host is not as it was before."""

    document: Mapping[str, object]
    changed: Sequence[str]


def do(wish: Wish, console: Console) -> Outcome:
    """Measure, clean up, show. Raises Refusal."""
    plan, tools, tree, able = wish.plan, find_tools(), find_tree(), capabilities()
    # Autogroup only groups tasks of the top cgroup; all of ours sit below it (layout.py).
    about_host = [warning for warning in able.warnings if not warning.startswith("autogroup")]
    warnings = (*facts.warnings(plan.scenario.cores), *about_host)
    _introduce(console, plan, warnings)
    host = {
        **facts.metadata(),
        "load_tool": facts.version_line([str(tools.load), "--version"]),
        "capabilities": asdict(able),
        "memcached": facts.version_line([str(tools.memcached), "--version"]),
    }
    try:
        with interruptible():
            before = look()
            measured = _measure(wish, tools, tree, console)
    except Interrupted:
        raise Refusal(ExitStatus.FAILED, "demo: interrupted: everything it had started is gone") from None
    changed = changes(before, look())
    comparisons = compare(measured)
    print_report(console, measured, comparisons)
    draw(measured, comparisons, wish.plot)
    if not changed:
        console.print("host exactly as before: verified", highlight=False)
    return Outcome(document(plan, measured, comparisons, host, warnings) | {"changed": changed}, changed)


def _introduce(console: Console, plan: Plan, warnings: tuple[str, ...]) -> None:
    scenario = plan.scenario
    arms, seconds = len(plan.arms), plan.timing.seconds
    console.print(
        f"{len(scenario.tenants)} workloads with {scenario.vcpus} vCPUs on {scenario.cores} cores"
        f" (consolidation ratio {scenario.consolidation_ratio:g}), layout {plan.layout}:"
        f" {arms} arms, {plan.repetitions} repetitions of {seconds:g} s: about {plan.total_s:.0f} s",
        highlight=False,
    )
    for warning in warnings:
        console.print(f"warning: {warning}", highlight=False)


def _measure(wish: Wish, tools: Tools, tree: Tree, console: Console) -> Measured:
    descriptor = lock()
    try:
        with (
            watching(tree, DIRECTORY, descriptor),
            prepared(tree) as directory,
            shown(console, wish.plan) as progress,
        ):
            return measure_all(wish.plan, tools, tree, directory, progress, wish.records)
    finally:
        unlock(descriptor)
