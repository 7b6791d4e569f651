"""Names that somebody else chose, for a terminal: a thread calls itself what it likes, escape codes too."""

from __future__ import annotations


def printable(name: str) -> str:
    """The name without anything that moves a cursor, ends a line or is no character."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in name)
