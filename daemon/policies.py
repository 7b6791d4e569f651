"""The policies by name. A new one is a file with its KIND, and a line here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from . import paper
from .critical import oracle
from .critical import rule as critical
from .guard import Guarded, GuardParameters
from .guard.rule import RULES as GUARD_RULES
from .policy import Kind, Policy, Settings
from .reservations.keep import RULES as RESERVATION_RULES
from .reservations.keep import Reserving
from .reservations.parameters import ReservationParameters
from .rivals import bvt, none, parties, static
from .settings import table_of

POLICIES: Mapping[str, Kind] = MappingProxyType(
    {
        kind.name: kind
        for kind in (none.KIND, paper.KIND, critical.KIND, static.KIND, bvt.KIND, parties.KIND, oracle.KIND)
    }
)

TABLES: Mapping[str, type] = MappingProxyType(
    {table_of(each): each for kind in POLICIES.values() for each in kind.settings}
)
"""The classes of settings, by what the configuration and the record call them."""

RULES: Mapping[str, str] = MappingProxyType(
    {rule: words for kind in POLICIES.values() for rule, words in kind.rules.items()}
    | dict(GUARD_RULES)
    | dict(RESERVATION_RULES)
)
"""What each rule means."""


@dataclass(frozen=True, slots=True)
class Parameters(Settings):
    """The settings of all policies. Without `guard` they act unguarded, as in older records; without
    `reservations` all cores are everybody's."""

    guard: GuardParameters | None = None
    reservations: ReservationParameters | None = None


def policy_named(name: str, parameters: Parameters) -> Policy:
    """The policy of that name; a ValueError that lists the known ones if there is none."""
    if name not in POLICIES:
        raise ValueError(f"policy {name!r}: not known: use one of {', '.join(POLICIES)}")
    policy = POLICIES[name].build(parameters)
    if parameters.guard is not None:
        policy = Guarded(policy, parameters.guard)
    return policy if parameters.reservations is None else Reserving(policy, parameters.reservations)


def written(parameters: Parameters) -> dict[str, object]:
    """All settings, by table: what the head of a record holds."""
    tables: dict[str, object] = {name: parameters.of(kind) for name, kind in TABLES.items()}
    return {**tables, "guard": parameters.guard, "reservations": parameters.reservations}


def unlike_default(settings: Iterable[object]) -> tuple[object, ...]:
    """Those that somebody has chosen."""
    return tuple(one for one in settings if one != type(one)())
