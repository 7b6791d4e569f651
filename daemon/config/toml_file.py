"""A TOML file as plain values. Every way in which a file can be none is one line; nothing behind this has to
be ready for a thousand brackets or a number of five thousand digits."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

from ..hosts.host import ROOM
from ..linux import regular_file

DEEPEST = 16
"""No key of ours is nested deeper than five."""

LONGEST_BYTES = ROOM << 10
"""16 MiB: a KiB for each thread that there is room for, were each a workload of its own."""


class NotToml(Exception):
    """What is wrong, and how to mend it."""


def read(path: Path) -> Mapping[str, object]:
    """What the file says. Raises NotToml."""
    try:
        raw = tomllib.loads(_bytes_of(path).decode("utf-8-sig"))  # some editors begin it with a mark
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


def _bytes_of(path: Path) -> bytes:
    with regular_file.opened(path) as file:
        content = file.read(LONGEST_BYTES + 1)
    if len(content) > LONGEST_BYTES:
        raise NotToml(f"has more than {LONGEST_BYTES >> 20} MiB: give a shorter file")
    return content


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
