"""Names as somebody chooses them who wants to break a parser, and the kernel's own ways of writing them."""

from __future__ import annotations

import re

from hypothesis import strategies as st

PIECES = (
    *(bytes((number,)) for number in range(1, 32)),
    *(
        b" ",
        b"\\",
        b"\\n",
        b"\\040",
        b"#",
        b"\x7f",
        b"(",
        b")",
        b") R 1 2",
        b"((",
        b":",
        b"::",
        b",",
        b"-",
        b" - ",
    ),
    *(
        b"\x80",
        b"\x85",
        b"\xff",
        b"\xc3",
        b"\xed\xa0\x80",
        "\x85".encode(),
        "\u2028".encode(),
        "\ufeff".encode(),
    ),
    *(
        b"Tgid:\t1",
        b"\nTgid:\t1",
        b"\rTgid:x",
        b"cpu",
        b"cgroup",
        b"0",
        b"0::/x",
        b"1",
        b" - cgroup c rw,cpu",
    ),
    *(
        b"\x1b]0;owned\x07",
        b"\x1b[2J",
        b"dasec-1",
        b"dasec-probe-1",
        b"CPU 0/KVM",
        b".",
        b"x" * 200,
        "\u202e".encode(),
    ),
)


def names(most: int, without: bytes = b"\0") -> st.SearchStrategy[bytes]:
    """Names of up to so many bytes; of `without` they hold nothing, as the kernel sees to."""
    kept = [cleaned for piece in PIECES if (cleaned := piece.translate(None, without))]
    return st.lists(st.sampled_from(kept) | st.binary(max_size=3), max_size=6).map(
        lambda pieces: b"".join(pieces).translate(None, without)[:most]
    )


COMM = names(15)
"""What prctl(PR_SET_NAME) takes."""

GROUP = st.lists(
    names(40, b"\0\n/").filter(lambda name: name not in (b"", b".", b"..")), min_size=1, max_size=4
).map(lambda steps: b"/" + b"/".join(steps))
"""The path of a cgroup: cgroup_mkdir() refuses newlines."""

PATH = st.lists(
    names(40, b"\0/").filter(lambda name: name not in (b"", b".", b"..")), min_size=1, max_size=4
).map(lambda steps: b"/" + b"/".join(steps))
"""Any other path."""

ANYTHING = names(400, b"") | st.binary(max_size=400)
"""What is no file of the kernel at all."""


def in_status(comm: bytes) -> bytes:
    """proc_task_name() with escape: newlines and backslashes."""
    return comm.replace(b"\\", b"\\\\").replace(b"\n", b"\\n")


def in_mountinfo(path: bytes, hash_too: bool = False) -> bytes:
    """seq_path() and mangle(): blanks, tabs, newlines, backslashes, since 6.9 also #, as octal."""
    escaped = rb"[ \t\n\\#]" if hash_too else rb"[ \t\n\\]"
    return re.sub(escaped, lambda found: b"\\%03o" % found[0][0], path)
