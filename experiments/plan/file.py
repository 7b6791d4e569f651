"""An experiment's TOML file as a table, with keys that the command line sets in it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from dasec.config.complaints import follows, path_of, reason_of
from dasec.errors import ExitStatus, Refusal

Told = Mapping[str, Any]
AskedT = TypeVar("AskedT")


def told_in(file: Path, settings: Iterable[str] = ()) -> Told:
    """What the file says; `settings` such as `repetitions=8` replace its keys. Refuses what is not TOML."""
    try:
        told = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise refusal(file, [f"{error.strerror}: give an experiment's TOML file"]) from error
    except UnicodeDecodeError as error:
        raise refusal(file, [f"byte {error.start} is not UTF-8: save it as UTF-8"]) from error
    except tomllib.TOMLDecodeError as error:
        raise refusal(file, [f"not TOML: {error}: mend that line"]) from error
    for setting in settings:
        told |= _set(setting)
    return told


def _set(setting: str) -> Told:
    key, _, value = setting.partition("=")
    try:
        return tomllib.loads(f"{key} = {value}")
    except tomllib.TOMLDecodeError:
        pass
    try:
        return tomllib.loads(f'{key} = "{value}"')
    except tomllib.TOMLDecodeError:
        what = f"--set {setting}: give a key and a value as in the file, such as ratios=[2,4]"
        raise Refusal(ExitStatus.USAGE, what) from None


def validated(kind: type[AskedT], told: Told, file: Path) -> AskedT:
    """As an experiment of that kind, whose values are of their keys' own types: `true` is no number. Refuses
    with all that is wrong, a line each."""
    try:
        # By way of JSON, where an array may be a tuple also for strict schemas.
        return TypeAdapter(kind).validate_json(to_json(told, inf_nan_mode="constants"), strict=True)
    except ValidationError as error:
        wrong = error.errors()
        told_of = ((path_of(one["loc"]), reason_of(one)) for one in wrong if not follows(one, wrong))
        raise refusal(file, [": ".join(filter(None, parts)) for parts in told_of]) from None


def refusal(file: Path, lines: Iterable[str]) -> Refusal:
    """Of what is wrong with a file."""
    return Refusal(ExitStatus.USAGE, *(f"{file}: {line}" for line in lines))
