"""A program that computes for a time that it is told, and prints what it did at the end."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dasec.lab.kit.driver import Place, WorkDone, WorkKind, WorkOrder
from dasec.lab.kit.errors import failure
from dasec.lab.kit.process import Child, held

PATIENCE_S = 30.0
"""What a program may take beyond its time: one that has many children collects them."""

Read = Callable[[str], WorkDone]
"""From all that it printed. Raises ValueError where that is not what it prints."""


class Benchmark:
    """A driver of batch work whose threads are all alike."""

    __slots__ = ()

    @property
    def kind(self) -> WorkKind:
        return WorkKind.BATCH

    def vcpus(self, order: WorkOrder) -> int:
        return order.threads

    def critical(self, order: WorkOrder) -> tuple[str, ...]:  # noqa: ARG002  # the interface of drivers
        return ()


@dataclass(slots=True)
class Program:
    """It waits in a shell until it is told to begin."""

    order: WorkOrder
    child: Child
    read: Read
    statuses: tuple[int, ...] = (0,)
    """How it ends when all is well."""
    _end_s: float = 0.0

    @classmethod
    def start(
        cls,
        order: WorkOrder,
        place: Place,
        command: Sequence[str],
        read: Read,
        statuses: tuple[int, ...] = (0,),
    ) -> Program:
        order.folder.mkdir(parents=True)
        return cls(order, Child.start(order.name, place, held(command), order.folder / "log"), read, statuses)

    def await_up(self) -> None:
        """The shell is there; in a container it takes a moment to be."""
        self.child.wait_until(lambda: bool(self.child.pids()), "is there")

    def pids(self) -> tuple[int, ...]:
        return self.child.pids()

    def begin(self, start_ns: int) -> None:
        self._end_s = start_ns / 1e9 + self.order.total_s
        self.child.release(start_ns)

    def ensure_alive(self) -> None:
        if not self._end_s or time.monotonic() < self._end_s:
            self.child.ensure_alive()

    def finish(self) -> WorkDone:
        self.child.wait_well(self._end_s - time.monotonic() + PATIENCE_S, self.statuses)
        return self.outcome()

    def outcome(self) -> WorkDone:
        """Of what it has printed. Refusal if it is something else than was expected."""
        try:
            return self.read(self.child.log.read_text(encoding="utf-8", errors="replace"))
        except ValueError as error:
            raise failure(f"{self.order.name}: {error}: {self.child.log}") from error

    def stop(self) -> None:
        self.child.kill()


def number(text: str) -> float:
    """A number as programs print it. Raises ValueError with a line for people."""
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"printed '{text}' where a number is expected") from None


def found(pattern: str, text: str) -> float:
    """The number in the last place where the pattern, with one group, matches. Raises ValueError."""
    matches = re.findall(pattern, text, re.MULTILINE)
    if not matches:
        raise ValueError(f"printed no line like '{pattern}'")
    return number(matches[-1])
