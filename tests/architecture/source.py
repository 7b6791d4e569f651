"""The package's source files as syntax trees, and what they import."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "daemon"


@dataclass(frozen=True, slots=True)
class Source:
    """One file: its path below daemon/, its dotted name below dasec, and its syntax tree."""

    path: str
    module: str
    tree: ast.Module
    line_count: int


def parse(text: str, path: str) -> Source:
    parts = path.removesuffix(".py").split("/")
    module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return Source(path, module, ast.parse(text, path), len(text.splitlines()))


@cache
def all_sources() -> tuple[Source, ...]:
    files = sorted(PACKAGE.rglob("*.py"))
    return tuple(parse(path.read_text(encoding="utf-8"), str(path.relative_to(PACKAGE))) for path in files)


def imports(source: Source) -> Iterator[tuple[int, str]]:
    """Line and absolute name of everything that the file imports: `dasec.x.y` for relative imports.

    `from a import b` yields both `a` and `a.b`, because b may be a module.
    """
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _base(source, node)
            yield node.lineno, base
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


def _base(source: Source, node: ast.ImportFrom) -> str:
    if node.level == 0:
        return node.module or ""
    package = ["dasec", *(source.module.split(".") if source.module else [])]
    is_package = source.path.endswith("__init__.py")
    keep = len(package) - node.level + (1 if is_package else 0)
    return ".".join([*package[:keep], *([node.module] if node.module else [])])
