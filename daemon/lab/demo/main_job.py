"""The demo from its first look at the host to its last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console

from ...model import Capabilities
from ..kit import facts
from ..kit.arms import CONTROL, NONE, settings_of
from ..kit.bench import RunPlan
from ..kit.blocks import measure_all
from ..kit.errors import ended_by_signals
from ..kit.layout import GroupLayout
from ..kit.needs import capabilities, check_drivers, find_tree
from ..kit.results import Measured
from ..kit.scenario import Timing
from ..kit.sentinel import measuring
from ..kit.tree import Tree
from ..kit.untouched import changes, look
from ..load_tool import find_tool
from .display import shown
from .document import document
from .lines import lines_of
from .plot import draw
from .report import print_report
from .situations import Situation

AS_PROBED = '\n[host]\nweights = "on"\n'
"""What trying found is told once, at the start: each daemon would try again."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What to run, under what (repetitions, if not as many as by default), where the picture goes, and
    the daemon's records, if they are to be kept. Without a layout the host decides."""

    situations: tuple[Situation, ...]
    arms: tuple[str, ...]
    timing: Timing
    repetitions: int | None
    seed: int
    layout: GroupLayout | None
    plot: Path
    records: Path | None = None

    def plans(self, layout: GroupLayout) -> tuple[RunPlan, ...]:
        """A plan for each situation."""
        settings = {arm: settings_of(arm) + AS_PROBED for arm in self.arms if arm not in (NONE, CONTROL)}
        return tuple(
            RunPlan(
                one.scenario,
                layout,
                self.timing,
                self.arms,
                self.repetitions or one.repetitions,
                self.seed + number,
                settings,
            )
            for number, one in enumerate(self.situations)
        )


@dataclass(frozen=True, slots=True)
class DemoOutcome:
    """The result as JSON, and what of the host is not as it was before."""

    document: Mapping[str, object]
    changed: Sequence[str]


def do(wish: Wish, console: Console) -> DemoOutcome:
    """Measure, clean up, show. Raises Refusal."""
    check_drivers(tenant.driver for one in wish.situations for tenant in one.scenario.tenants)
    tree, able = find_tree(), capabilities()
    layout = wish.layout or (GroupLayout.VM if able.nested_weight else GroupLayout.FLAT)
    plans = wish.plans(layout)
    # Autogroup only groups tasks of the top cgroup; all of ours sit below it (layout.py).
    about_host = [warning for warning in able.warnings if not warning.startswith("autogroup")]
    warnings = (*facts.warnings(plans[0].scenario.cores), *about_host)
    _introduce(console, wish, plans, able, warnings)
    host = {
        **facts.metadata(),
        "load_tool": facts.version_line([str(find_tool()), "--version"]),
        "capabilities": asdict(able),
    }
    with ended_by_signals():
        before = look()
        measured = _measure(wish, plans, tree, console)
    changed = changes(before, look())
    names = [one.name for one in wish.situations]
    lines = [line for name, one in zip(names, measured, strict=True) for line in lines_of(name, one)]
    print_report(console, lines, measured)
    draw(names, measured, lines, wish.plot)
    if not changed:
        console.print("host exactly as before: verified", highlight=False)
    told = document(wish.situations, plans, measured, lines, host, warnings)
    return DemoOutcome(told | {"changed": changed}, changed)


def _introduce(
    console: Console, wish: Wish, plans: Sequence[RunPlan], able: Capabilities, warnings: Sequence[str]
) -> None:
    scenario = plans[0].scenario
    total_s = sum(plan.total_s for plan in plans)
    console.print(
        f"{len(scenario.tenants)} workloads with {scenario.vcpus} vCPUs on {scenario.cores} cores"
        f" (consolidation ratio {scenario.consolidation_ratio:g}), layout {plans[0].layout}, in"
        f" {len(plans)} situations: about {total_s:.0f} s",
        highlight=False,
    )
    if wish.layout is None and not able.nested_weight:
        console.print(
            "layout flat, because this kernel starves groups when it re-weights one: with a group for each VM"
            " the plain host is unsteady here, and nothing can be told (docs/decisions/0040-reweighting.md)",
            highlight=False,
        )
    for warning in warnings:
        console.print(f"warning: {warning}", highlight=False, markup=False)


def _measure(wish: Wish, plans: Sequence[RunPlan], tree: Tree, console: Console) -> tuple[Measured, ...]:
    names = [one.name for one in wish.situations]
    with measuring(tree) as directory, shown(console, names, plans) as progress:
        return measure_all(plans, tree, directory, progress, wish.records)
