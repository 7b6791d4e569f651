"""pydantic's errors as one line each: where, what, how to mend."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, to_json

Location = Sequence[int | str]

_WORDS = {"too_short": "it is empty", "string_type": "it is no text in quotes"}
"""In place of pydantic's, which speak of its own types."""


class Complaint(NamedTuple):
    """One thing that is wrong with a configuration. `where` is a path such as `workload[2].share`."""

    where: str
    what: str
    mend: str

    def __str__(self) -> str:
        return ": ".join(part for part in self if part)


def complaints_of(error: ValidationError, schema: type[BaseModel]) -> list[Complaint]:
    """All that `error` says, less what only follows from the rest."""
    details = error.errors(include_url=False)
    said = (each for each in details if not (follows(each, details) or _is_misspelt(each, details, schema)))
    return [_complaint(detail, schema) for detail in said]


def path_of(location: Location) -> str:
    """`("workload", 2, "share")` as `workload[2].share`."""
    text = ""
    for step in location:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def nearest(word: str, known: Iterable[str]) -> str:
    """How to mend a name that is not among `known`."""
    names = sorted(known)
    close = meant(word, names)
    return f"did you mean `{close}`?" if close else f"known here: {', '.join(names)}"


def meant(word: str, names: Sequence[str]) -> str | None:
    """Of the names the one that a misspelt one is like."""
    return next(iter(difflib.get_close_matches(word, names, n=1)), None)


def follows(detail: ErrorDetails, details: Sequence[ErrorDetails]) -> bool:
    """A list whose entries are wrong counts as too short: only its right entries were counted."""
    inside = detail["loc"]
    return detail["type"] == "too_short" and any(
        other["loc"][: len(inside)] == inside and other is not detail for other in details
    )


def _is_misspelt(detail: ErrorDetails, details: Sequence[ErrorDetails], schema: type[BaseModel]) -> bool:
    """A key that is missing, and is there under an unknown name."""
    if detail["type"] != "missing":
        return False
    *table, key = detail["loc"]
    known = sorted(_section(schema, table).model_fields)
    unknown = (other["loc"] for other in details if other["type"] == "extra_forbidden")
    return any([*where] == table and meant(str(name), known) == key for *where, name in unknown)


def reason_of(detail: ErrorDetails) -> str:
    """What is wrong, in the words of the check that found it: pydantic puts its own before them."""
    return str(detail.get("ctx", {}).get("error", detail["msg"]))


def _complaint(detail: ErrorDetails, schema: type[BaseModel]) -> Complaint:
    location, given = detail["loc"], detail["input"]
    where = path_of(location)
    if detail["type"] == "extra_forbidden":
        known = _section(schema, location[:-1]).model_fields
        return Complaint(where, "unknown key", nearest(str(location[-1]), known))
    expected = _expected(schema, location)
    if detail["type"] == "missing":
        return Complaint(where, "is missing", f"give {expected}" if expected else "add it")
    if detail["type"] == "value_error":
        return Complaint(where, reason_of(detail), f"give {expected}" if expected else "")
    if detail["type"] == "model_type":
        mend = f"write {_header(location)} and its keys below it"
        return Complaint(where, f"is {_short(given)}, not a table", mend)
    why = _WORDS.get(detail["type"]) or _lowered(detail["msg"])
    what = f"is {_short(given)}, which is wrong: {why}"
    return Complaint(where, what, f"give {expected}" if expected else "")


def _section(schema: type[BaseModel], location: Location) -> type[BaseModel]:
    """The part of the schema that `location` lies in."""
    for step in location:
        field = schema.model_fields.get(str(step))
        inner = section_in(field.annotation) if field else None
        schema = inner or schema
    return schema


def section_in(annotation: object) -> type[BaseModel] | None:
    """The table that a field of this type is; None: it is none."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(section_in, get_args(annotation))), None)


def _expected(schema: type[BaseModel], location: Location) -> str:
    """What the field at `location` wants, from its description."""
    names = [step for step in location if isinstance(step, str)]
    if not names:
        return ""
    field = _section(schema, names[:-1]).model_fields.get(names[-1])
    return (field.description or "") if field else ""


def _header(location: Location) -> str:
    """That begins this table in the file."""
    name = ".".join(step for step in location if isinstance(step, str))
    return f"[[{name}]]" if isinstance(location[-1], int) else f"[{name}]"


def _short(value: object) -> str:
    if isinstance(value, Mapping):
        return "a table"
    text = to_json(value, serialize_unknown=True).decode()
    return text if len(text) <= 40 else f"{text[:37]}..."


def _lowered(message: str) -> str:
    return message[:1].lower() + message[1:]
