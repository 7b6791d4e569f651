"""What a person may set, said where the setting is: a field of a settings class names its range and its unit.

The configuration's tables are made from these classes (config/tables.py), and the classes check themselves.
A field in nanoseconds is given in the unit of its range, by a key that says so: `tick_ns` as `tick_us`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import fields
from enum import Enum
from functools import cache
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

NS = {"us": 1_000, "ms": 1_000_000}


class Range(NamedTuple):
    """Integers that a setting takes, or that each of its members has to be, as a person gives them; and what
    is said to one who gives another."""

    low: int
    high: int
    help: str = ""
    unit: str = ""

    @property
    def text(self) -> str:
        """What to give."""
        between = f"from {self.low} to {self.high}"
        return self.help or (f"{between} {self.unit}" if self.unit else f"an integer {between}")


class Help(NamedTuple):
    """What is said to one who gives something else."""

    text: str


class SettingField(NamedTuple):
    """One field of a settings class: its type without what is said of it, and that."""

    name: str
    type: Any
    range: Range | None
    help: str

    @property
    def ns(self) -> int:
        """How many nanoseconds its key counts in; 1 where it is no time."""
        return NS[self.range.unit] if self.range and self.range.unit else 1

    @property
    def key(self) -> str:
        """What the configuration calls it."""
        return self.name.removesuffix("ns") + self.range.unit if self.range and self.range.unit else self.name


@cache
def settings_of(kind: Hashable) -> Mapping[str, SettingField]:
    """The fields of a settings class, by name."""
    assert isinstance(kind, type)
    hints = get_type_hints(kind, include_extras=True)
    return {each.name: _setting(each.name, hints[each.name]) for each in fields(kind)}


def table_of(kind: type) -> str:
    """What the configuration calls the table of a settings class."""
    return kind.__name__.removesuffix("Parameters").lower()


def check(settings: object) -> None:
    """Raises ValueError where a setting is out of its range. A time may be as long as one likes: what a
    person may give is bounded, what can be computed with is not."""
    kind: type = type(settings)
    for name, setting in settings_of(kind).items():
        if setting.range is not None and setting.type is int:
            value: int = getattr(settings, name)
            for wrong in _wrong(value, setting.range):
                raise ValueError(f"{table_of(kind)}: {name} is {value}: give {wrong}")


def _wrong(value: int, allowed: Range) -> Iterator[str]:
    if allowed.unit:
        least = min(1, allowed.low)
        if value < least:
            yield f"{least} or more"
    elif not allowed.low <= value <= allowed.high:
        yield f"{allowed.low} to {allowed.high}"


def _setting(name: str, hint: object) -> SettingField:
    said = list(_said(hint))
    allowed = next((one for one in said if isinstance(one, Range)), None)
    words = next((one.text for one in said if isinstance(one, Help | Range)), "")
    plain = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    return SettingField(name, plain, allowed, words or _choices(plain))


def _choices(plain: object) -> str:
    """In the file's words."""
    if plain is bool:
        return "true or false"
    if not (isinstance(plain, type) and issubclass(plain, Enum)):
        raise TypeError(f"{plain}: say what it may be")
    *others, last = (f'"{one.value}"' for one in plain)
    return f"{', '.join(others)} or {last}"


def _said(hint: object) -> Iterator[object]:
    """All that is said of a type and of its members."""
    if get_origin(hint) is Annotated:
        hint, *said = get_args(hint)
        yield from said
    for member in get_args(hint):
        yield from _said(member)
