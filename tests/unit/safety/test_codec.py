"""One journal line."""

from __future__ import annotations

from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasec.knobs.knob import GroupId, KnobRef, NativeValue
from dasec.knobs.table import TABLE
from dasec.knobs.weights import WEIGHT_V1
from dasec.linux.namespaces import Namespaces
from dasec.model import VcpuId
from dasec.safety.journal.codec import (
    READABLE,
    SCHEMA,
    Bequest,
    Entry,
    GroupGone,
    GroupMade,
    Header,
    Held,
    Origin,
    Settled,
    decode_header,
    encode,
    encode_header,
    encode_value,
    frames,
    line_seed,
    unframe,
)

SEED = line_seed("some boot")
SEEDS = {SCHEMA: SEED}

numbers = st.integers(0, 2**63)
paths = st.text(st.characters(codec=None), max_size=30)
masks = st.sets(st.integers(0, 8191), max_size=40).map(lambda cpus: tuple(sorted(cpus)))
values: st.SearchStrategy[NativeValue] = st.one_of(numbers, paths, masks)
kinds = st.sampled_from(TABLE)
threads = st.builds(VcpuId, numbers, numbers, numbers)
groups = st.builds(GroupId, paths, numbers, st.none() | threads)
refs = st.builds(KnobRef, threads | groups, kinds, paths)
entries: st.SearchStrategy[Entry] = st.one_of(
    st.builds(Held, refs, values, st.lists(values, min_size=1, max_size=4).map(tuple), numbers),
    st.builds(Settled, refs),
    st.builds(GroupMade, paths),
    st.builds(GroupGone, paths),
    st.builds(Bequest, numbers, kinds, values, values, numbers),
)


@given(entries, numbers)
def test_every_entry_reads_as_it_was_written(entry: Entry, sequence: int) -> None:
    line = frames([encode(entry)], sequence, SEED)
    assert line.isascii()
    assert line.count("\n") == 1
    assert unframe(line.rstrip("\n").encode(), SEEDS) == (sequence, entry)


@given(entries, st.data())
def test_a_line_with_one_flipped_bit_is_no_line(entry: Entry, data: st.DataObject) -> None:
    line = bytearray(frames([encode(entry)], 1, SEED).rstrip("\n").encode())
    line[data.draw(st.integers(0, len(line) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    assert unframe(bytes(line), SEEDS) is None


@given(st.binary(max_size=200))
def test_anything_else_is_no_line(line: bytes) -> None:
    assert unframe(line, SEEDS) is None


def test_a_line_of_another_boot_is_no_line() -> None:
    line = frames([encode(GroupMade("/x"))], 1, SEED).rstrip("\n").encode()
    assert unframe(line, {SCHEMA: line_seed("another boot")}) is None


@pytest.mark.parametrize(
    "payload",
    [
        *("[]", "{}", "7", '["x"]', '["h",1]', '["s",[1,2,3],"no such knob",""]', '["s",1,2,3,"slice",""]'),
        *('["s",[],"slice",""]', '["s",["/x"],"quota",""]', '["b",1,"slice",[9,1],0,0]'),
    ],
)
def test_an_intact_line_without_an_entry_of_this_schema_is_no_line(payload: str) -> None:
    assert unframe(frames([payload], 1, SEED).rstrip("\n").encode(), SEEDS) is None


@pytest.mark.parametrize(("inode", "said"), [(0, ""), (4711, ",4711")])
def test_a_line_of_schema_1_names_a_group_by_a_thread_and_a_file(inode: int, said: str) -> None:
    older = f'["h",5,[1126],100,1,50,"weight_v1","/cg/vm/cpu.shares"{said},1024]'
    ref = KnobRef(GroupId("/cg/vm", inode, VcpuId(100, 1, 50)), WEIGHT_V1, "cpu.shares")
    seeds = {schema: line_seed("some boot", schema) for schema in READABLE}
    line = frames([older], 1, seeds[1]).rstrip("\n").encode()
    assert unframe(line, seeds) == (1, Held(ref, 1024, (1126,), 5))
    assert unframe(line, {SCHEMA: SEED}) is None


def test_a_mask_of_8192_cpus_takes_a_few_bytes() -> None:
    assert encode_value(tuple(range(8192))) == "[0,8191]"


def test_a_header_says_whose_journal_it_is() -> None:
    line = encode_header(Origin("some-boot", Namespaces(4026531836, 4026531834)))
    assert decode_header(line.rstrip(b"\n")) == Header(2, "some-boot", Namespaces(4026531836, 4026531834))


def test_a_header_of_a_version_that_knew_no_namespaces_is_one() -> None:
    text = b"dasec-journal 2 some-boot"
    assert decode_header(b"%s %08x" % (text, crc32(text))) == Header(2, "some-boot", None)


@pytest.mark.parametrize("words", [b"1", b"1,2,3", b"pid,time", b"1,2 3"])
def test_a_header_whose_namespaces_are_none_is_none(words: bytes) -> None:
    text = b"dasec-journal 2 some-boot " + words
    assert decode_header(b"%s %08x" % (text, crc32(text))) is None


@given(st.binary(max_size=80))
def test_anything_else_is_no_header(line: bytes) -> None:
    assert decode_header(line) is None
