"""What decides: the Policy protocol, the settings that policies take, and what a policy says of itself.

A policy is a pure function of the period and of what it remembered; what it wants to remember it hands back
in the decision. In a decision, a knob that is None stays as it is. The kinds are in policies.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol, TypeVar

from .model import Decision, Level, Period, PolicyState

_Settings = TypeVar("_Settings")

UNSHOWN = {"shown": False}
"""Metadata of a field of a state that the lines of a record leave out (record.decision_row)."""


class Policy(Protocol):
    """Decides what should change, from what happened and what it remembers."""

    @property
    def name(self) -> str:
        """The name in the configuration and in the record."""

    def initial_state(self) -> PolicyState:
        """What it remembers before the first period."""

    def decide(self, period: Period, state: PolicyState) -> Decision:
        """Wanted knobs, reasons and the next state; the same for the same arguments, always."""


def layers_of(state: PolicyState) -> Iterator[PolicyState]:
    """The state of a policy around a policy, and then of that in it."""
    yield state
    inner = getattr(state, "inner", None)
    if isinstance(inner, PolicyState):
        yield from layers_of(inner)


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of all policies: those that are not as by default."""

    given: tuple[object, ...] = ()

    def of(self, kind: type[_Settings]) -> _Settings:
        """The settings of this class."""
        return next((one for one in self.given if isinstance(one, kind)), None) or kind()


@dataclass(frozen=True, slots=True)
class Kind:
    """A policy as it is offered: its name, how it is made, the classes of its settings, how much it wants to
    know of who woke whom, and what each of its rules means, in words for an operator."""

    name: str
    build: Callable[[Settings], Policy]
    settings: tuple[type, ...] = ()
    edges: Level = Level.NONE
    rules: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
