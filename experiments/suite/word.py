"""A guest is told what to do in one word on its kernel's command line. Pure; both sides have it."""

from __future__ import annotations

import base64
import zlib


def word_of(told: bytes) -> str:
    """Without a space or a quotation mark, and short: the kernel's command line has 2048 characters
    (COMMAND_LINE_SIZE in arch/x86/include/asm/setup.h)."""
    return base64.urlsafe_b64encode(zlib.compress(told, 9)).decode("ascii")


def told_in(word: str) -> bytes:
    """What the word was made of."""
    return zlib.decompress(base64.urlsafe_b64decode(word))
