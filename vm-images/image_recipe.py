"""What an image is made of, read from its TOML file and checked whole."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
LISTS = ("packages", "keep", "modules")
KEYS = (*LISTS, "extends", "directory")
DIRECTORY_KEYS = {"variable", "target"}


class RecipeError(Exception):
    """A recipe that cannot be used, in one line."""


@dataclass(frozen=True, slots=True)
class Directory:
    """A directory of the user's, which a variable of the environment names, and its place in the guest."""

    variable: str
    target: str


@dataclass(frozen=True, slots=True)
class Recipe:
    """Debian packages, the files of them that are kept (patterns; the shared libraries that those need come
    along), kernel modules, and perhaps a directory of the user's."""

    name: str
    packages: tuple[str, ...]
    keep: tuple[str, ...]
    modules: tuple[str, ...]
    directory: Directory | None = None


def known() -> tuple[str, ...]:
    """The images that there are recipes for."""
    return tuple(sorted(path.stem for path in HERE.glob("*.toml")))


def read(name: str, folder: Path = HERE, of: tuple[str, ...] = ()) -> Recipe:
    """The recipe with all that it extends; `of` are those that extend it."""
    file = folder / f"{name}.toml"
    if name in of:
        raise RecipeError(f"{file.name}: extends: leads back to it by {', '.join(of)}")
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RecipeError(f"{name}: no such image: known are {', '.join(known())}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise RecipeError(f"{file.name}: {error}") from None
    if unknown := sorted(set(table) - set(KEYS)):
        raise RecipeError(f"{file.name}: {', '.join(unknown)}: unknown: known are {', '.join(KEYS)}")
    base = Recipe(name, (), (), ())
    if "extends" in table:
        base = read(str(table["extends"]), folder, (*of, name))
    return Recipe(
        name,
        base.packages + _strings(file, table, "packages"),
        base.keep + tuple(_below_root(file, "keep", one) for one in _strings(file, table, "keep")),
        base.modules + _strings(file, table, "modules"),
        _directory(file, table) or base.directory,
    )


def _strings(file: Path, table: dict[str, object], key: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
        raise RecipeError(f"{file.name}: {key}: is not a list of names")
    return tuple(value)


def _directory(file: Path, table: dict[str, object]) -> Directory | None:
    value = table.get("directory")
    if value is None:
        return None
    if not isinstance(value, dict) or set(value) != DIRECTORY_KEYS:
        raise RecipeError(f"{file.name}: directory: needs {' and '.join(sorted(DIRECTORY_KEYS))}")
    return Directory(str(value["variable"]), _below_root(file, "directory", str(value["target"])))


def _below_root(file: Path, key: str, path: str) -> str:
    """A path in the guest, which is made below a folder of this host."""
    parts = Path(path).parts
    if not parts or parts[0] == "/" or ".." in parts:
        raise RecipeError(f"{file.name}: {key}: {path}: is no path below the guest's root: usr/bin/name is")
    return path
