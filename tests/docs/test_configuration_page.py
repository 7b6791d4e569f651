"""The page of all keys has all of them, with the defaults and ranges that the schema has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel
from pydantic_core import to_json

from dasec.config.complaints import section_in
from dasec.config.config import Config
from dasec.policies import POLICIES, TABLES

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = (REPOSITORY / "docs/configuration.md").read_text(encoding="utf-8")
PACKAGED = (REPOSITORY / "packaging/deb/etc/dasec.toml").read_text(encoding="utf-8")
EXAMPLE = PAGE.partition("```toml")[2].partition("```")[0]


def keys() -> Iterator[tuple[str, str]]:
    """Of the whole file: table, key. No settings of policies."""
    for name, field in Config.model_fields.items():
        section = section_in(field.annotation)
        if section is None:
            yield "", name
        elif name not in TABLES:
            yield from ((name, key) for key in section.model_fields)


def ranges(section: type[BaseModel], before: str, within: str = "") -> Iterator[str]:
    """The rows of bounded keys: of this table, and of those in it but for policies'."""
    for key, field in section.model_fields.items():
        inner = section_in(field.annotation)
        if inner is None:
            if re.search(r"\d to \d", field.description or ""):
                yield f"| {before}`{within}{key}` | {field.description} |"
        elif before:
            yield from ranges(inner, before, f"{key}.")
        elif key not in TABLES:
            yield from ranges(inner, "`[[workload]]` " if key == "workload" else f"`[{key}]` ")


def settings() -> Iterator[str]:
    """Of policies: the rows of their table."""
    for name in TABLES:
        section = section_in(Config.model_fields[name].annotation)
        assert section is not None
        for key, field in section.model_fields.items():
            default = to_json(field.default).decode() if field.default is not None else ""
            yield f"| `[{name}]` `{key}` | {default} | {field.description} |"


def in_the_example() -> set[tuple[str, str]]:
    """Every key, with its table."""
    found, table = set(), ""
    for line in EXAMPLE.splitlines():
        if line.startswith("["):
            table = line.strip("[]")
        elif key := re.match(r"(\w+) =", line):
            found.add((table, key[1]))
    return found


def test_the_example_has_every_key() -> None:
    assert in_the_example() == set(keys())


def test_every_key_with_bounds_has_them_beside_it() -> None:
    assert [row for row in ranges(Config, "") if row not in PAGE.splitlines()] == []


@pytest.mark.parametrize("text", [EXAMPLE, PACKAGED])
def test_the_policies_named_beside_the_key_are_those_that_there_are(text: str) -> None:
    beside = re.search(r"policy = \S+ +# (.+)", text)
    assert beside is not None
    assert {each.split()[0] for each in beside[1].split(" | ")} == set(POLICIES)


def test_the_table_has_every_setting_of_a_policy() -> None:
    assert "\n".join(settings()) in PAGE
