"""The paper's background work (section 6.5): in each iteration main hands rows of a matrix to workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dasec.lab.kit.driver import OwnCpu, Place, WorkDone, WorkKind, WorkOrder
from dasec.lab.kit.load_driver import ToolRun, missing_tool, tool_command
from dasec.lab.kit.process import Child
from dasec.lab.load_tool import figure

from .options import options_of, refusal, whole

OPTIONS = {"size": "128"}


class Multiplying(ToolRun):
    """A run of it."""

    def finish(self) -> WorkDone:
        result = self.await_end()
        window_s, cpu_s = figure(result, "cpu", "window_s"), figure(result, "cpu", "total_s")
        waited_s = figure(result, "cpu", "waited_s")
        return WorkDone(
            work=figure(result, "iterations"),
            unit="products",
            seconds=figure(result, "seconds_measured"),
            own_cpu=(OwnCpu(cpu_s / window_s, 0.0, frozenset({self.tool.process.pid}), waited_s / window_s),),
            figures={"cpu_s": cpu_s},
        )


@dataclass(frozen=True, slots=True)
class MatrixMul:
    """`threads` are main and its workers."""

    name: str = "matrixmul"
    kind: WorkKind = WorkKind.BATCH

    @property
    def packages(self) -> Mapping[str, str]:
        """None: it is the load tool's."""
        return {}

    def missing(self) -> str | None:
        return missing_tool()

    def vcpus(self, order: WorkOrder) -> int:
        return order.threads

    def critical(self, order: WorkOrder) -> tuple[str, ...]:
        return ()

    def checked(self, order: WorkOrder) -> dict[str, str]:
        """Its options. Refuses those that are none, and too few threads."""
        options = options_of(order, OPTIONS)
        whole(order, "size", options["size"])
        if order.threads < 2:
            raise refusal(order, "threads", f"must be at least 2, main and a worker, got '{order.threads}'")
        return options

    def start(self, order: WorkOrder, place: Place) -> ToolRun:
        options = self.checked(order)
        order.folder.mkdir(parents=True)
        command = tool_command(order, "matrixmul", {**options, "threads": str(order.threads - 1)})
        return Multiplying(order, Child.start(order.name, place, command, order.folder / "log"))
