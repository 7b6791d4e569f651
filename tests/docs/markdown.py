"""Just enough Markdown: fenced blocks, links, headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)


class Block(NamedTuple):
    """A fenced block and its language."""

    language: str
    text: str


def blocks(markdown: str) -> list[Block]:
    return [Block(match[1], match[2]) for match in FENCE.finditer(markdown)]


def commands(markdown: str) -> list[str]:
    """Every line of the blocks marked `sh`, without comments."""
    lines = [line for block in blocks(markdown) if block.language == "sh" for line in block.text.splitlines()]
    return [line.split(" #")[0].strip() for line in lines if line.strip() and not line.startswith("#")]


def links(markdown: str) -> Iterator[str]:
    prose = re.sub(r"`[^`\n]*`", "", FENCE.sub("", markdown))
    yield from (match[1] or match[2] for match in LINK.finditer(prose))


def anchors(markdown: str) -> set[str]:
    """What the forges make of headings: lower case, hyphens for blanks, no punctuation."""
    headings = HEADING.findall(FENCE.sub("", markdown))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def table_under(markdown: str, first_header: str) -> list[list[str]]:
    """The rows of the table whose first column has that header, as lists of cells."""
    lines = markdown.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"| {first_header} |"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows
