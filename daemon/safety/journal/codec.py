"""One journal line: a CRC, a sequence number and a JSON array.

Each line stands alone: it names the knob, its prior value and the values of ours that the
kernel may hold, so that any one intact line is enough to put that knob back, whatever
became of its neighbours. The CRC starts from the boot id: a line of another boot, whose
knobs died with its kernel, can never pass for one of ours, even where the header is gone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple
from zlib import crc32

from ...knobs.knob import GroupId, KnobRef, NativeKnob, NativeValue, Owner
from ...knobs.table import named
from ...linux.namespaces import Namespaces
from ...model import VcpuId

MAGIC = "dasec-journal"
SCHEMA = 2
"""2: a knob's owner is a thread or a group. In 1 each knob named a thread, and a group's its file."""

READABLE = (SCHEMA, 1)
"""What is put back."""

MAX_CPUS = 65_536
"""Longest run of CPUs in an encoded mask; the kernel's own limit (NR_CPUS) is 8192."""


class Held(NamedTuple):
    """From now on the kernel may hold one of `ours` in this knob. `at_ticks`: since boot."""

    ref: KnobRef
    prior: NativeValue
    ours: tuple[NativeValue, ...]
    at_ticks: int


class Settled(NamedTuple):
    """This knob is no longer ours: put back, vanished, or yielded."""

    ref: KnobRef


class GroupMade(NamedTuple):
    """This cgroup directory is ours, or is about to be."""

    path: str


class GroupGone(NamedTuple):
    """This cgroup directory is no longer ours."""

    path: str


class Bequest(NamedTuple):
    """A value of ours that a thread born of process `pid` since `since_ticks` may have inherited."""

    pid: int
    kind: NativeKnob
    value: NativeValue
    prior: NativeValue
    since_ticks: int


Entry = Held | Settled | GroupMade | GroupGone | Bequest


class Origin(NamedTuple):
    """Where threads have the ids and start times of its lines: one boot, and the namespaces of who writes."""

    boot_id: str
    namespaces: Namespaces


class Header(NamedTuple):
    """Whose journal this is. No namespaces: of a version that did not say which."""

    schema: int
    boot_id: str
    namespaces: Namespaces | None


def line_seed(boot_id: str, schema: int | None = None) -> int:
    """What the CRC of each line starts from, of this schema or of an older one."""
    return crc32(f"{MAGIC} {schema or SCHEMA} {boot_id}".encode())


def encode_header(origin: Origin) -> bytes:
    """The first line of a journal."""
    pid, time = origin.namespaces
    text = f"{MAGIC} {SCHEMA} {origin.boot_id} {pid},{time}"
    return f"{text} {crc32(text.encode()):08x}\n".encode()


def decode_header(line: bytes) -> Header | None:
    """What the first line says, or None where it is not an intact header of any schema."""
    words = line.split(b" ")
    text, _, crc = line.rpartition(b" ")
    if len(words) not in (4, 5) or words[0] != MAGIC.encode() or crc != b"%08x" % crc32(text):
        return None
    try:
        namespaces = Namespaces(*map(int, words[3].split(b","))) if len(words) == 5 else None
        return Header(int(words[1]), words[2].decode("ascii"), namespaces)
    except (ValueError, TypeError):
        return None


def encode_value(value: NativeValue) -> str:
    """A native value as JSON; a mask as first and last CPU of each run (8192 CPUs fit a few bytes)."""
    if type(value) is int:
        return str(value)
    if isinstance(value, tuple):
        return json.dumps(_runs(value), separators=(",", ":"))
    return json.dumps(value)


def encode_ref(ref: KnobRef) -> str:
    """The knob's part of a line, without brackets. A caller that writes a knob often may keep it."""
    return f'{_encode_owner(ref.owner)},"{ref.kind.name}",{json.dumps(ref.path)}'


def _encode_owner(owner: Owner) -> str:
    """A thread as its numbers; a group as its directory and inode, and the thread that is alone in it."""
    if isinstance(owner, VcpuId):
        return f"[{owner.pid},{owner.tid},{owner.start_ticks}]"
    inhabitant = "" if owner.inhabitant is None else f",{_encode_owner(owner.inhabitant)}"
    return f"[{json.dumps(owner.directory)},{owner.inode}{inhabitant}]"


def encode_held(head: str, at_ticks: int, ours: tuple[NativeValue, ...]) -> str:
    """The payload of a Held entry; `head` is `encode_ref(ref),encode_value(prior)`."""
    values = ",".join([str(one) if type(one) is int else encode_value(one) for one in ours])
    return f'["h",{at_ticks},[{values}],{head}]'


def encode(entry: Entry) -> str:
    """The payload of any entry."""
    match entry:
        case Held(ref, prior, ours, at_ticks):
            return encode_held(f"{encode_ref(ref)},{encode_value(prior)}", at_ticks, ours)
        case Settled(ref):
            return f'["s",{encode_ref(ref)}]'
        case GroupMade(path):
            return f'["g",{json.dumps(path)}]'
        case GroupGone(path):
            return f'["r",{json.dumps(path)}]'
        case Bequest(pid, kind, value, prior, since):
            return f'["b",{pid},"{kind.name}",{encode_value(value)},{encode_value(prior)},{since}]'


def frames(payloads: Iterable[str], sequence: int, seed: int) -> str:
    """Payloads as whole lines, numbered from `sequence`; ASCII throughout."""
    lines = []
    for number, payload in enumerate(payloads, sequence):
        body = f"{number} {payload}"
        lines.append(f"{crc32(body.encode(), seed):08x} {body}\n")
    return "".join(lines)


def unframe(line: bytes, seeds: Mapping[int, int]) -> tuple[int, Entry] | None:
    """The sequence number and entry of an intact line (without its newline), else None. `seeds`: what the CRC
    starts from, of each schema that the line may have."""
    crc, _, body = line.partition(b" ")
    schema = next((one for one, seed in seeds.items() if crc == b"%08x" % crc32(body, seed)), None)
    if schema is None:
        return None
    number, _, payload = body.partition(b" ")
    try:
        return int(number), _entry(json.loads(payload), _ref if schema == SCHEMA else _ref_of_1)
    except (ValueError, TypeError, LookupError, RecursionError):
        return None


def _entry(fields: list[Any], ref_of: Callable[..., KnobRef]) -> Entry:
    """Types are not checked: the CRC says that we wrote this line."""
    match fields[0]:
        case "h":
            _, at, ours, *ref, prior = fields
            return Held(ref_of(*ref), _value(prior), tuple([_value(one) for one in ours]), at)
        case "s":
            return Settled(ref_of(*fields[1:]))
        case "g":
            return GroupMade(fields[1])
        case "r":
            return GroupGone(fields[1])
        case "b":
            _, pid, kind, value, prior, since = fields
            return Bequest(pid, named(kind), _value(value), _value(prior), since)
    raise ValueError("not an entry of this schema")


def _ref(owner: list[Any], kind: str, path: str) -> KnobRef:
    if isinstance(owner[0], int):
        return KnobRef(VcpuId(*owner), named(kind), path)
    directory, inode, *inhabitant = owner
    return KnobRef(GroupId(directory, inode, *(VcpuId(*one) for one in inhabitant)), named(kind), path)


def _ref_of_1(pid: int, tid: int, start_ticks: int, kind: str, path: str, inode: int = 0) -> KnobRef:
    """Of schema 1, which named the thread for whose sake a group was changed, and the file of the knob."""
    found, vcpu = named(kind), VcpuId(pid, tid, start_ticks)
    if not found.of_group:
        return KnobRef(vcpu, found, path)
    directory, _, name = path.rpartition("/")
    return KnobRef(GroupId(directory, inode, None if found.after_groups else vcpu), found, name)


def _value(raw: int | str | list[int]) -> NativeValue:
    return _cpus(raw) if isinstance(raw, list) else raw


def _runs(cpus: tuple[int, ...]) -> list[int]:
    edges: list[int] = []
    for cpu in cpus:
        if edges and cpu == edges[-1] + 1:
            edges[-1] = cpu
        else:
            edges += (cpu, cpu)
    return edges


def _cpus(edges: list[int]) -> tuple[int, ...]:
    cpus: list[int] = []
    for first, last in zip(edges[::2], edges[1::2], strict=True):
        if not 0 <= first <= last < MAX_CPUS:
            raise ValueError("not a run of CPUs")
        cpus.extend(range(first, last + 1))
    return tuple(cpus)
