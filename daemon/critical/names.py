"""Names in a configuration that may stand for several: `helper-*` is every name that begins so."""

from __future__ import annotations

ANY_END = "*"
"""At the end of a pattern: whatever follows."""


def matches(pattern: str, name: str) -> bool:
    """Does the pattern mean that name?"""
    if pattern.endswith(ANY_END):
        return name.startswith(pattern.removesuffix(ANY_END))
    return name == pattern
