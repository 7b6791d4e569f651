"""The paper's background work (section 6.5): in each iteration main hands rows of a matrix to workers."""

from __future__ import annotations

from dataclasses import dataclass

from dasec.lab.load_tool import figure

from .child import Child
from .driver import Kind, Order, Outcome, Place
from .loadtool import Measured, missing_tool, tool_command
from .options import options_of, refusal, whole

OPTIONS = {"size": "128"}


class Multiplying(Measured):
    """A run of it."""

    def finish(self) -> Outcome:
        result = self.await_end()
        return Outcome(
            work=figure(result, "iterations"),
            unit="products",
            seconds=figure(result, "seconds_measured"),
            figures={"cpu_s": figure(result, "cpu_s")},
        )


@dataclass(frozen=True, slots=True)
class MatrixMul:
    """`threads` are main and its workers."""

    name: str = "matrixmul"
    kind: Kind = Kind.BATCH

    def missing(self) -> str | None:
        return missing_tool()

    def vcpus(self, order: Order) -> int:
        return order.threads

    def critical(self, order: Order) -> tuple[str, ...]:
        return ()

    def start(self, order: Order, place: Place) -> Measured:
        options = options_of(order, OPTIONS)
        whole(order, "size", options["size"])
        if order.threads < 2:
            raise refusal(order, "threads", f"must be at least 2, main and a worker, got '{order.threads}'")
        order.folder.mkdir(parents=True)
        command = tool_command(order, "matrixmul", {**options, "threads": str(order.threads - 1)})
        running = Multiplying(order, Child.start(order.name, place, command, order.folder / "log"))
        running.await_ready()
        return running
