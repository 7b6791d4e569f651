"""The native service of experiments/load: requests that need several threads at once, and background work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dasec.lab.kit.driver import Place, WorkKind, WorkOrder
from dasec.lab.kit.load_driver import FEEDER, ToolRun, missing_tool, service_options, tool_command
from dasec.lab.kit.process import Child

from .options import one_of, refusal, whole

OURS = frozenset({"seconds", "warmup", "rate", "seed", "out", "samples", "arrivals", "ready"})


@dataclass(frozen=True, slots=True)
class Variant:
    """How a variant's threads follow from their number: `--option` counts all but `fixed` of them."""

    option: str
    fixed: int
    critical: tuple[str, ...]


VARIANTS: Mapping[str, Variant] = {
    "fanout": Variant("helpers", 1, ("main", "helper-*")),
    "pipeline": Variant("stages", 1, ("main", "stage-*")),
    "convoy": Variant("helpers", 2, ("main", "worker-*", "holder")),
}
"""As in experiments/load; `pretend` serves nobody."""


@dataclass(frozen=True, slots=True)
class FanOut:
    """`threads` are those that requests need, main among them; background threads come on top."""

    name: str = "fanout"
    kind: WorkKind = WorkKind.SERVICE

    def missing(self) -> str | None:
        return missing_tool()

    def vcpus(self, order: WorkOrder) -> int:
        options = _options(order)
        background = whole(order, "background", options.get("background", "0"), 0)
        woken = {"logger": 1 if background else 0, "peer": background}
        return order.threads + background + woken.get(options.get("background-wakes", "none"), 0)

    def critical(self, order: WorkOrder) -> tuple[str, ...]:
        return _variant(order).critical

    def start(self, order: WorkOrder, place: Place) -> ToolRun:
        variant, options = _variant(order), _options(order)
        if order.threads < variant.fixed:
            raise refusal(order, "threads", f"must be at least {variant.fixed}, got '{order.threads}'")
        options[variant.option] = str(order.threads - variant.fixed)
        order.folder.mkdir(parents=True)
        command = tool_command(order, "service", service_options(order, options))
        return ToolRun(order, Child.start(order.name, place, command, order.folder / "log"))


def _options(order: WorkOrder) -> dict[str, str]:
    """The load tool knows its own options; it refuses others in one line."""
    options = dict(order.options)
    for name in sorted(OURS.intersection(options)):
        raise refusal(order, name, "is set here")
    if FEEDER in options:
        raise refusal(order, FEEDER, "would be a client inside the workload: memcached has one outside")
    return options


def _variant(order: WorkOrder) -> Variant:
    variant = VARIANTS[one_of(order, "variant", order.options.get("variant", "fanout"), tuple(VARIANTS))]
    if variant.option in order.options:
        raise refusal(order, variant.option, "follows from threads")
    return variant
