"""Names that somebody else chose: a thread, a group, a mount and a domain are called what their makers like,
with escape codes, line ends and bytes that are no UTF-8.

Such a name is made printable where it enters the model (threads, domains), and all text that may quote one
where it leaves us: a line of the log, of a command, of the keeper, a detail in the record, a trouble in the
status. Names that the kernel is to be asked for again stay as they are.
"""

from __future__ import annotations


def printable(text: str) -> str:
    """One line without anything that moves a cursor, ends the line or is no character."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)
