"""How a compiled BPF object lays out its structures, by its type information (Documentation/bpf/btf.rst)."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

_INT, _ARRAY, _STRUCT, _UNION, _ENUM, _FUNC_PROTO, _VAR, _DATASEC, _DECL_TAG, _ENUM64 = (
    *(1, 3, 4, 5, 6, 13, 14, 15, 17, 19),
)
_FIXED: Mapping[int, int] = {_INT: 4, _ARRAY: 12, _VAR: 4, _DECL_TAG: 4}
_EACH: Mapping[int, int] = {_STRUCT: 12, _UNION: 12, _ENUM: 8, _FUNC_PROTO: 8, _DATASEC: 12, _ENUM64: 12}
"""Bytes behind the common part of a type of that kind: once, or for each of its members."""


class Layout(NamedTuple):
    """Bytes: of the whole, and where each member begins, by name and in order."""

    size: int
    members: Mapping[str, int]


def layouts(image: Path) -> Mapping[str, Layout]:
    """Of all structures of this object that have a name."""
    btf = _section(image.read_bytes(), b".BTF")
    header, types, types_bytes, strings, _ = struct.unpack_from("<IIIII", btf, 4)
    names = btf[header + strings :]
    return dict(_structures(btf[header + types : header + types + types_bytes], names))


def _structures(types: bytes, names: bytes) -> Iterator[tuple[str, Layout]]:
    at = 0
    while at < len(types):
        name, info, size = struct.unpack_from("<III", types, at)
        at += 12
        kind, count = info >> 24 & 0x1F, info & 0xFFFF
        if kind == _STRUCT and name:
            members = [struct.unpack_from("<III", types, at + 12 * number) for number in range(count)]
            places = {_name(names, member): bits // 8 for member, _, bits in members}
            yield _name(names, name), Layout(size, places)
        at += _FIXED.get(kind, 0) + _EACH.get(kind, 0) * count


def _name(names: bytes, at: int) -> str:
    return names[at : names.index(b"\0", at)].decode()


def _section(elf: bytes, wanted: bytes) -> bytes:
    """Of an ELF file of 64 bits, the lower byte first."""
    (table,) = struct.unpack_from("<Q", elf, 40)
    each, count, of_names = struct.unpack_from("<HHH", elf, 58)
    sections = [struct.unpack_from("<II8xQQQ", elf, table + each * number) for number in range(count)]
    names = sections[of_names][3]
    for name, _, _, offset, size in sections:
        start = names + name
        if elf[start : elf.index(b"\0", start)] == wanted:
            return elf[offset : offset + size]
    raise KeyError(wanted)
