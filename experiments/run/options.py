"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

Command = TypeVar("Command", bound=Callable[..., None])


def giving(options: Sequence[Callable[[Any], Any]]) -> Callable[[Command], Command]:
    """Gives a command these options, in this order in its help."""

    def with_options(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return with_options
