"""The paper's background work (section 6.5): in each iteration main hands rows of a matrix to workers."""

from __future__ import annotations

from dataclasses import dataclass

from dasec.lab.kit.driver import Place, WorkDone, WorkKind, WorkOrder
from dasec.lab.kit.load_driver import ToolRun, missing_tool, tool_command
from dasec.lab.kit.process import Child
from dasec.lab.load_tool import figure

from .options import options_of, refusal, whole

OPTIONS = {"size": "128"}


class Multiplying(ToolRun):
    """A run of it."""

    def finish(self) -> WorkDone:
        result = self.await_end()
        return WorkDone(
            work=figure(result, "iterations"),
            unit="products",
            seconds=figure(result, "seconds_measured"),
            figures={"cpu_s": figure(result, "cpu_s")},
        )


@dataclass(frozen=True, slots=True)
class MatrixMul:
    """`threads` are main and its workers."""

    name: str = "matrixmul"
    kind: WorkKind = WorkKind.BATCH

    def missing(self) -> str | None:
        return missing_tool()

    def vcpus(self, order: WorkOrder) -> int:
        return order.threads

    def critical(self, order: WorkOrder) -> tuple[str, ...]:
        return ()

    def start(self, order: WorkOrder, place: Place) -> ToolRun:
        options = options_of(order, OPTIONS)
        whole(order, "size", options["size"])
        if order.threads < 2:
            raise refusal(order, "threads", f"must be at least 2, main and a worker, got '{order.threads}'")
        order.folder.mkdir(parents=True)
        command = tool_command(order, "matrixmul", {**options, "threads": str(order.threads - 1)})
        return Multiplying(order, Child.start(order.name, place, command, order.folder / "log"))
