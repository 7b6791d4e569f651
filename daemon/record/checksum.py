"""The checksum that ends each line of a record. Apart from entries.py: checking is not decoding."""

from __future__ import annotations

import zlib

SEAL_LENGTH = len(b',"crc":"00000000"}')


def seal(body: bytes, chain: int) -> tuple[bytes, int]:
    """`body` (a JSON object) as a line with its checksum, and the chain for the next line."""
    crc = zlib.crc32(body, chain)
    return b'%b,"crc":"%08x"}\n' % (body[:-1], crc), crc


def unseal(line: bytes, chain: int) -> tuple[bytes, int] | None:
    """The body of a line without its newline, and the next chain; None if the checksum is wrong."""
    sealed, crc = seal(line[:-SEAL_LENGTH] + b"}", chain)
    return (line[:-SEAL_LENGTH] + b"}", crc) if sealed[:-1] == line else None
