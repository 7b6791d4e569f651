"""The tables of the configuration that hold a policy's settings, made from the classes that it takes."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal, Self, get_origin

from pydantic import Field, create_model, model_validator

from ..settings import SettingField, settings_of, table_of
from .section import Section


class SettingsSection(Section):
    """A table that stands for one settings class."""

    def parameters(self) -> object:
        """As the policy takes them. Raises ValueError."""
        raise NotImplementedError


def section_of(kind: type) -> type[SettingsSection]:
    """The table for this class: a key for each of its fields, and its defaults."""
    settings = settings_of(kind).values()
    default = kind()

    class _Section(SettingsSection):
        def parameters(self) -> object:
            return kind(**{one.name: _ours(one, getattr(self, one.key)) for one in settings})

        @model_validator(mode="after")
        def _agree(self) -> Self:
            try:
                self.parameters()
            except ValueError as error:
                raise ValueError(str(error).removeprefix(f"{table_of(kind)}: ")) from error
            return self

    keys: dict[str, Any] = {
        one.key: (_type(one), _field(one, getattr(default, one.name))) for one in settings
    }
    return create_model(kind.__name__.replace("Parameters", "Section"), __base__=_Section, **keys)


def _type(field: SettingField) -> object:
    if isinstance(field.type, type) and issubclass(field.type, StrEnum):
        return Literal[*(member.value for member in field.type)]
    if field.range is None or field.type is int:
        return field.type
    if get_origin(field.type) is not tuple:
        raise TypeError(f"{field.name}: a Range is of integers, and this is {field.type}")
    member = Annotated[int, Field(ge=field.range.low, le=field.range.high)]
    return tuple[member, ...]


def _field(field: SettingField, default: object) -> object:
    default = _theirs(field, default)
    if field.range is None or field.type is not int:
        return Field(default=default, description=field.help)
    return Field(default=default, description=field.help, ge=field.range.low, le=field.range.high)


def _ours(field: SettingField, given: object) -> object:
    if isinstance(field.type, type) and issubclass(field.type, StrEnum):
        return field.type(str(given))
    return given * field.ns if isinstance(given, int) and field.ns > 1 else given


def _theirs(field: SettingField, value: object) -> object:
    if isinstance(value, StrEnum):
        return value.value
    return value // field.ns if isinstance(value, int) and field.ns > 1 else value
