"""A TOML file as plain values. Every way in which a file can be none is one line; nothing behind this has to
be ready for a thousand brackets or a number of five thousand digits."""

from __future__ import annotations

import os
import stat
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
    """Nobody may keep a daemon waiting that reads its file again: of a pipe without a writer, say."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise NotToml("is not a file that can be read again: give one")
        return file.read()


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
