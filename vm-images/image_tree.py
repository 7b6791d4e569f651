"""The guest's root: what is kept of the unpacked packages, and every shared library that this needs."""

from __future__ import annotations

import re
import shutil
import stat
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

LIBRARIES = ("lib64", "lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu", "lib", "usr/lib")
"""Where the dynamic linker looks, below a root; programs name the linker itself in lib64."""


class TreeError(Exception):
    """Something is not where the recipe says, in one line."""


def keep(packages: Path, patterns: Iterable[str], tree: Path) -> None:
    """Copies what the patterns name, links as links."""
    for pattern in patterns:
        found = sorted(packages.glob(pattern))
        if not found:
            raise TreeError(f"keep: {pattern}: is in none of the packages")
        for source in found:
            _copy(source, tree / source.relative_to(packages))


def add_libraries(packages: Path, tree: Path) -> None:
    """Copies what the programs in the tree load, and what that loads."""
    seen: set[str] = set()
    waiting = list(_programs(tree))
    while waiting:
        names = sorted(set(_needed(waiting)) - seen)
        seen.update(names)
        waiting = []
        for name in names:
            if not any(tree.rglob(name)):
                source = _library(packages, name)
                target = tree / source.relative_to(packages)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(_inside(packages, source), target)
                waiting.append(target)


def add_applets(tree: Path) -> None:
    """Busybox under all of its names, but for those that something else has."""
    listing = subprocess.run([tree / "bin/busybox", "--list"], capture_output=True, text=True, check=True)
    for name in listing.stdout.split():
        if not (link := tree / "bin" / name).exists():
            link.symlink_to("busybox")


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir() and not source.is_symlink():
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    else:
        shutil.copy(source, target, follow_symlinks=False)


def _programs(tree: Path) -> Iterator[Path]:
    """Programs and shared libraries."""
    for path in sorted(tree.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        if path.stat().st_mode & stat.S_IXUSR or ".so" in path.name:
            with path.open("rb") as stream:
                if stream.read(4) == b"\x7fELF":
                    yield path


def _needed(programs: Iterable[Path]) -> Iterator[str]:
    """Names of shared libraries and of the dynamic linker."""
    command = ["readelf", "--wide", "--dynamic", "--program-headers", *map(str, programs)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    yield from re.findall(r"\(NEEDED\).*\[(.+)\]", said)
    yield from (Path(name).name for name in re.findall(r"program interpreter: (.+)\]", said))


def _library(packages: Path, name: str) -> Path:
    for place in LIBRARIES:
        path = packages / place / name
        if path.is_symlink() or path.exists():
            return path
    raise TreeError(f"{name}: a program needs it and none of the packages has it: add its package")


def _inside(root: Path, path: Path) -> Path:
    """The file behind the links, which are meant below `root`."""
    while path.is_symlink():
        to = path.readlink()
        path = root / to.relative_to("/") if to.is_absolute() else path.parent / to
    return path
