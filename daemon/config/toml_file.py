"""A TOML file as plain values. Every way in which a file can be none is one line; nothing behind this has to
be ready for a thousand brackets or a number of five thousand digits."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

DEEPEST = 16
"""No key of ours is nested deeper than five."""


class NotToml(Exception):
    """What is wrong, and how to mend it."""


def read(path: Path) -> Mapping[str, object]:
    """What the file says. Raises NotToml."""
    try:
        raw = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise NotToml(f"{error.strerror}: give a readable file") from error
    except UnicodeDecodeError as error:
        raise NotToml(f"byte {error.start} is not UTF-8: save it as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise NotToml(f"not TOML: {error}: mend that line") from error
    except ValueError as error:  # of int()
        raise NotToml("a number has too many digits: give a shorter one") from error
    except RecursionError as error:
        raise NotToml(_NESTED) from error
    if _is_deep(raw):
        raise NotToml(_NESTED)
    return raw


_NESTED = "tables or lists are nested too deep: no key of ours is: take them away"


def _is_deep(raw: object) -> bool:
    level = [raw]
    for _ in range(DEEPEST):
        level = [each for one in level for each in _inside(one)]
    return bool(level)


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list) else ()
