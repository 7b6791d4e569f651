"""Whatever somebody calls his threads, groups, mounts and domains, every parser finds what the kernel wrote;
and whatever a file holds, a parser fails with the error that it is known for, or not at all."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dasec.config import config
from dasec.knobs.groups import CGROUP
from dasec.knobs.knob import KnobRef
from dasec.linux import cgroupfs, cpulist, dasecfile, procfs
from dasec.linux.errors import HierarchyMissing
from dasec.linux.namespaces import Namespaces
from dasec.linux.printable import printable
from dasec.model import VcpuId
from dasec.record import tail
from dasec.record.checksum import seal
from dasec.record.lines import Unreadable
from dasec.record.replay import ReplayFailed, replay
from dasec.safety.journal import codec
from dasec.safety.journal.codec import GroupMade, Held
from dasec.safety.journal.directory import parse_locks
from dasec.safety.journal.salvage import salvage
from dasec.service import status
from dasec.workloads.libvirt import status_file
from dasec.workloads.libvirt.status_file import NotAStatus

from ..unit.linux.tree import stat_line
from .hostile import ANYTHING, COMM, GROUP, PATH, in_mountinfo, in_status, names

BOOT = "b00t"
ORIGIN = codec.Origin(BOOT, Namespaces(1, 2))


@given(COMM)
@example(b")")
@example(b") R 1 2")
def test_no_name_moves_a_field_of_a_stat_line(comm: bytes) -> None:
    line = stat_line(7, "NAME", "R", nice=-5, start=4711, core=63, policy=3).replace(b"NAME", comm)
    found = procfs.parse_stat(line)
    assert found[1:] == ("R", 0, -5, 4711, 63, 3)
    assert found.comm == comm.decode("utf-8", "replace")
    assert procfs.parse_parent(line) == 0


@given(COMM)
@example(b"\rTgid:x")
@example(b"\nTgid:\t1")
def test_no_name_hides_the_process_of_a_thread(comm: bytes) -> None:
    text = b"Name:\t%b\nUmask:\t0022\nTgid:\t4711\nNgid:\t0\nCpus_allowed_list:\t0-1\n" % in_status(comm)
    assert procfs.parse_process(text) == 4711
    assert procfs.parse_cpus_allowed(text) == {0, 1}


@given(GROUP, GROUP, st.booleans())
@example(b"/a\x0bb", b"/a\rb", True)
def test_a_thread_is_in_the_group_of_that_name(group: bytes, other: bytes, with_v1: bool) -> None:
    v1 = b"9:name=systemd:%b\n4:cpuset:%b\n3:cpu,cpuacct:%b\n" % (other, other, group)
    lines = (v1 if with_v1 else b"") + b"0::%b\n" % (other if with_v1 else group)
    found = cgroupfs.parse_group(lines, 1 if with_v1 else 2)
    assert os.fsencode(found) == group


@given(
    st.lists(st.tuples(PATH, names(20), names(20)), max_size=4), PATH, PATH, st.booleans(), st.integers(0, 4)
)
@example([(b"/tmp/x\ry", b"", b"")], b"/", b"/sys/fs/cgroup/cpu", True, 0)
@example([], b"/", b"/a\\040b", False, 0)
def test_no_mount_hides_the_hierarchy(
    others: list[tuple[bytes, bytes, bytes]], root: bytes, place: bytes, hash_too: bool, at: int
) -> None:
    def written(path: bytes) -> bytes:
        return in_mountinfo(path, hash_too)

    lines = [
        b"%d 1 0:%d / %b rw,nosuid shared:7 - fuse.%b %b rw,user_id=0"
        % (number, number, written(path), written(kind), written(source))
        for number, (path, kind, source) in enumerate(others)
    ]
    ours = b"33 31 0:30 %b %b rw shared:9 - cgroup  rw,cpu,cpuacct" % (written(root), written(place))
    lines.insert(at, ours)
    (found,) = cgroupfs.parse_mounts(b"\n".join(lines) + b"\n")
    assert found.version == 1
    assert (os.fsencode(found.root), os.fsencode(found.mount)) == (root, place)


KERNEL_FILES: dict[str, Callable[[bytes], object]] = {
    "stat": procfs.parse_stat,
    "parent": procfs.parse_parent,
    "schedstat": procfs.parse_schedstat,
    "status": procfs.parse_process,
    "mask": procfs.parse_cpus_allowed,
    "mountinfo": cgroupfs.parse_mounts,
    "locks": lambda text: parse_locks(text, "fe:00:1"),
    "dasec": lambda text: dasecfile.parse(text).columns(dasecfile.parse(text).lines),
    "knob": dasecfile.knob_word,
    "wakers": lambda text: list(dasecfile.wakers(text)),
}


@pytest.mark.parametrize("name", KERNEL_FILES)
@given(text=ANYTHING | st.sampled_from([b"9" * 5000, b"", b"\n", b"1: FLOCK A W 5 fe:00:1", b"1: FLOCK"]))
def test_a_file_that_the_kernel_never_writes_costs_one_known_error(name: str, text: bytes) -> None:
    found: list[int | None] = []
    try:
        KERNEL_FILES[name](text)
    except OSError as error:
        found.append(error.errno)
    assert found in ([], [errno.EPROTO])


@given(ANYTHING, st.sampled_from([1, 2]))
def test_any_list_of_groups_has_ours_or_none(text: bytes, version: int) -> None:
    with contextlib.suppress(HierarchyMissing):
        assert cgroupfs.parse_group(text, version)


@given(st.text() | st.sampled_from(["9" * 5000, "0-" + "9" * 5000, "\u0663", "-", "1-", "0-65536"]))
def test_a_list_of_cpus_is_one_or_says_in_one_line_what_is_wrong(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert all(0 <= cpu <= cpulist.LARGEST_CPU for cpu in cpulist.parse(text))


XML = (
    b"<?xml version='1.0' encoding='%b'?><domstatus pid='%b'><vcpus><vcpu id='%b' pid='%b'/></vcpus>"
    b"<domain><name>n</name><uuid>u</uuid><cputune><vcpupin vcpu='%b' cpuset='%b'/></cputune>"
    b"<metadata><d:vm xmlns:d='https://dasec.invalid/xmlns/vm/1' share='%b'/></metadata></domain></domstatus>"
)
NUMBER = st.sampled_from([b"7", b"0", b"-1", b"", b"x", b"9" * 5000, "\u0663".encode()])
ENCODING = st.sampled_from([b"utf-8", b"nobody-knows", b"utf-7", b"utf-16", b"cp037", b"\xff"])


@given(ANYTHING | st.builds(lambda *words: XML % words, ENCODING, *[NUMBER] * 6))
@example(b"<a>" * 20_000)
@example(b"<a>" * 20_000 + b"</a>" * 20_000)
def test_a_libvirt_file_is_a_status_or_none(text: bytes) -> None:
    with contextlib.suppress(NotAStatus):
        status_file.parse(text)


def test_a_share_of_thousands_of_digits_costs_the_share_not_the_domain() -> None:
    found = status_file.parse(XML % (b"utf-8", b"7", b"0", b"8", b"0", b"0", b"9" * 5000))
    assert found.opt_in is not None
    assert (found.opt_in.share, len(found.opt_in.complaints), found.vcpus[0].tid) == (None, 1, 8)


TOML = st.sampled_from(
    [
        "a = " + "[" * 3000 + "]" * 3000,
        "a = " + "[" * 300 + "]" * 300,
        "a = " + "{a = " * 900 + "1" + "}" * 900,
        "a." * 3000 + "b = 1",
        "[" + "a." * 3000 + "b]",
        "period_ms = " + "9" * 5000,
        "period_ms = 0x" + "f" * 5000,
        "period_ms = 1e999999",
        '[[workload]]\nname = "x"\ncgroup = "/x\\u0000"',
        '[[workload]]\nname = "\\u001b]0;"\npids = [1]',
        f'[host]\ncpus = "{"9" * 5000}"\n[[workload]]\nname = "x"\npids = [1]',
    ]
)


@given(TOML | st.text())
def test_a_configuration_is_one_or_is_refused_in_lines(text: str) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "dasec.toml"
        file.write_bytes(text.encode("utf-8", "surrogatepass"))
        with pytest.raises(config.ConfigError) as refused:
            config.load(file)
        assert refused.value.lines
        assert all(len(line) < 1000 for line in refused.value.lines)


def _journal(path: str, other: str) -> bytes:
    entries: tuple[codec.Entry, ...] = (
        Held(KnobRef(VcpuId(1, 2, 3), CGROUP, other), path, (f"{path}/dasec-2",), 5),
        GroupMade(path),
    )
    lines = codec.frames(map(codec.encode, entries), 1, codec.line_seed(BOOT))
    return codec.encode_header(ORIGIN) + lines.encode()


@given(GROUP, PATH)
def test_the_journal_gives_back_every_name_as_it_was(group: bytes, mount: bytes) -> None:
    path = os.fsdecode(group)
    found = salvage(_journal(path, os.fsdecode(mount)), ORIGIN, "journal", exists=True)
    assert found.notices == ()
    assert list(found.ledger.groups) == [path]
    assert [os.fsencode(ref.path) for ref in found.ledger.held] == [mount]


@given(ANYTHING, st.integers(0, 300), st.integers(0, 300))
def test_no_journal_is_too_damaged_to_be_read(text: bytes, start: int, end: int) -> None:
    whole = _journal("/a", "/b")
    for data in (text, whole[:start] + text + whole[end:]):
        salvage(data, ORIGIN, "journal", exists=True)


ROWS = st.recursive(
    st.none() | st.integers(-1, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
KEYS = (
    "period",
    "clock_ns",
    "length_ns",
    "topology",
    "workloads",
    "usage",
    "knobs",
    "cores",
    "held",
    "results",
    "decision",
)
LINES = st.dictionaries(st.sampled_from(KEYS), ROWS).map(lambda row: json.dumps(row).encode())
HEADER = b'{"dasec_record":3,"policy":"none","parameters":{},"state":{}}'


@given(
    st.lists(
        LINES | ANYTHING | st.sampled_from([b"[" * 5000 + b"]" * 5000, b"[]", b"1", b"9" * 5000]), max_size=3
    )
)
@example([b'{"period":1,"clock_ns":1,"workloads":[],"knobs":{"a":1}}'])
def test_a_record_that_nobody_wrote_is_said_to_be_none(bodies: list[bytes]) -> None:
    data, chain = seal(HEADER, 0)
    for body in bodies:
        line, chain = seal(body.replace(b"\n", b" ") + b"}", chain)
        data += line
    with TemporaryDirectory() as folder:
        file = Path(folder) / "record"
        file.write_bytes(data)
        with contextlib.suppress(Unreadable):
            list(tail.RecordTail(file).read())
        with pytest.raises(ReplayFailed):
            replay(file)


@given(ROWS | st.dictionaries(st.sampled_from(sorted(status.Status.__required_keys__)), ROWS), ANYTHING)
def test_a_status_that_no_daemon_wrote_is_said_to_be_none(row: object, text: bytes) -> None:
    with TemporaryDirectory() as folder:
        for content in (json.dumps(row).encode(), text, b"[" * 5000):
            (Path(folder) / status.FILE_NAME).write_bytes(content)
            assert isinstance(status.read(folder, 0), status.Absent)


@given(names(200, b""))
def test_what_is_shown_is_one_line_that_every_file_can_hold(name: bytes) -> None:
    shown = printable(os.fsdecode(name))
    assert shown.isprintable()
    shown.encode()
    assert printable("every name, käse") == "every name, käse"
