"""A guest is told what to do in one word on its kernel's command line. Pure; both sides have it."""

from __future__ import annotations

import base64
import zlib
from typing import Self

from pydantic import TypeAdapter

LONGEST = 1800
"""Characters: what the fixed words leave of the 2048 of the kernel's command line (COMMAND_LINE_SIZE in
arch/x86/include/asm/setup.h)."""


def word_of(told: bytes) -> str:
    """Without a space or a quotation mark, and short."""
    return base64.urlsafe_b64encode(zlib.compress(told, 9)).decode("ascii")


def told_in(word: str) -> bytes:
    """What the word was made of."""
    return zlib.decompress(base64.urlsafe_b64decode(word))


class Worded:
    """What a dataclass needs that a guest is told: its own word, and itself from it."""

    __slots__ = ()

    @property
    def word(self) -> str:
        """For the kernel's command line."""
        return word_of(TypeAdapter(type(self)).dump_json(self, exclude_defaults=True))

    @classmethod
    def read(cls, word: str) -> Self:
        """From its word."""
        return TypeAdapter(cls).validate_json(told_in(word))
