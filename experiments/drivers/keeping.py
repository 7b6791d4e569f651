"""Servers that keep house beside requests, and runs that have to have that in them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dasec.lab.kit.driver import WorkDone, WorkOrder
from dasec.lab.kit.errors import failure
from dasec.lab.kit.load_driver import ToolRun

from .options import one_of, options_of

KEEPING = "housekeeping"
"""The option; a run without all of it since requests began has failed."""

Tasks = Mapping[str, tuple[str, ...]]
"""What is to be done, and the words of which the server then writes one."""


@dataclass(slots=True)
class Keeping(ToolRun):
    """A server with files of its own, which writes down what it does."""

    data: Path = Path()
    """Gone afterwards: the next run may have the same memory."""
    diary: Path = Path()
    tasks: Tasks = field(default_factory=dict)
    """Without which the run has failed."""
    _before: int = 0

    def begin(self, start_ns: int) -> None:
        """Requests, and background."""
        self._before = len(words(self.diary))
        ToolRun.begin(self, start_ns)  # a class with slots is made anew: super() has the old one

    def finish(self) -> WorkDone:
        """What was measured, if it kept house."""
        done = ToolRun.finish(self)
        missed = undone(self.tasks, words(self.diary)[self._before :])
        if missed:
            raise failure(f"{self.order.name}: {KEEPING}: no {', no '.join(missed)} since requests began")
        return done

    def stop(self) -> None:
        """All of it, and its files."""
        ToolRun.stop(self)
        shutil.rmtree(self.data, ignore_errors=True)


def is_kept(order: WorkOrder, known: Mapping[str, str]) -> bool:
    """Whether this order wants it. Refusal if that is neither true nor false."""
    return one_of(order, KEEPING, options_of(order, known)[KEEPING], ("true", "false")) == "true"


def undone(tasks: Tasks, said: str) -> tuple[str, ...]:
    """Which of them it has not written of."""
    return tuple(task for task, any_of in tasks.items() if not any(word in said for word in any_of))


def words(diary: Path) -> str:
    """All that it has written."""
    return diary.read_text(encoding="utf-8", errors="replace")
