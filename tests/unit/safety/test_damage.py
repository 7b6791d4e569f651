"""Ten thousand damaged journals, in `make chaos` a hundred thousand: each opens, says what it found, and
believes only what was written."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dasec.knobs.knob import KnobRef, NativeValue, Write
from dasec.safety.journal.codec import SCHEMA, Held, line_seed, unframe
from dasec.safety.journal.journal import Journal, read_boot_id

from .knobs_for_tests import group_of, mask_of, open_journal, slice_of, weight_of

ROUNDS = 10
MORE_ROUNDS = 90
JOURNALS_PER_ROUND = 1000
STEPS = 12


@dataclass
class Truth:
    """Everything that was ever written, and the file that says so."""

    priors: dict[KnobRef, set[NativeValue]] = field(default_factory=dict)
    ours: dict[KnobRef, set[NativeValue]] = field(default_factory=dict)
    groups: set[str] = field(default_factory=set)
    newest: dict[KnobRef, bytes] = field(default_factory=dict)
    settled: set[KnobRef] = field(default_factory=set)
    content: bytes = b""


def any_knob(chance: random.Random) -> tuple[KnobRef, NativeValue, Callable[[], NativeValue]]:
    tid = chance.randrange(1, 6)
    match chance.randrange(4):
        case 0:
            return slice_of(tid), 0, lambda: chance.randrange(1_400_000, 12_000_000)
        case 1:
            return weight_of(tid, f"/vm/vcpu{tid}"), 1024, lambda: chance.randrange(128, 8192)
        case 2:
            return mask_of(tid), (0, 1, 2, 3), lambda: tuple(sorted(chance.sample(range(4), 2)))
    return group_of(tid), "/vm", lambda: f"/vm/dasec-{tid}"


def write_journal(directory: Path, chance: random.Random) -> Truth:
    truth = Truth()
    (directory / "journal").unlink(missing_ok=True)
    journal = open_journal(directory)
    for _ in range(STEPS):
        step(journal, truth, chance)
    journal.close()
    truth.content = (directory / "journal").read_bytes()
    seeds = {SCHEMA: line_seed(read_boot_id())}
    for line in truth.content.splitlines(keepends=True)[1:]:
        intact = unframe(line.rstrip(), seeds)
        assert intact is not None
        if isinstance(intact[1], Held):
            truth.newest[intact[1].ref] = line
    return truth


def step(journal: Journal, truth: Truth, chance: random.Random) -> None:
    choice = chance.random()
    if choice < 0.75:
        writes = []
        for _ in range(chance.randrange(1, 4)):
            ref, prior, new = any_knob(chance)
            writes.append(Write(ref, prior, new()))
            truth.priors.setdefault(ref, set()).add(prior)
            truth.ours.setdefault(ref, set()).add(writes[-1].new)
            truth.settled.discard(ref)
        journal.begin(writes)
    elif choice < 0.9 and journal.outstanding():
        ref = chance.choice(journal.outstanding()).ref
        journal.settle([ref])
        truth.settled.add(ref)
    else:
        path = f"/cg/vm/dasec-{chance.randrange(1, 6)}"
        journal.group_made(path)
        truth.groups.add(path)


def flip(content: bytearray, chance: random.Random) -> None:
    for _ in range(chance.choice((1, 1, 1, 2, 8, 64))):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)


def tear(content: bytearray, chance: random.Random) -> None:
    del content[chance.randrange(len(content)) :]


def zero(content: bytearray, chance: random.Random) -> None:
    start = chance.randrange(len(content))
    end = min(len(content), start + chance.randrange(1, 300))
    content[start:end] = bytes(end - start)


def lose(content: bytearray, chance: random.Random) -> None:
    start = chance.randrange(len(content))
    del content[start : start + chance.randrange(1, 300)]


def insert(content: bytearray, chance: random.Random) -> None:
    start = chance.randrange(len(content))
    content[start:start] = chance.randbytes(chance.randrange(1, 300))


def repeat(content: bytearray, chance: random.Random) -> None:
    start = chance.randrange(len(content))
    piece = content[start : start + chance.randrange(1, 300)]
    at = chance.randrange(len(content))
    content[at:at] = piece


DAMAGE = (flip, flip, flip, tear, tear, zero, lose, insert, repeat)


def seeds() -> list[object]:
    more = range(ROUNDS, ROUNDS + MORE_ROUNDS)
    return [*range(ROUNDS), *(pytest.param(seed, marks=pytest.mark.slow) for seed in more)]


@pytest.mark.parametrize("seed", seeds())
def test_a_damaged_journal_opens_says_so_and_believes_only_what_was_written(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    truth = write_journal(tmp_path, chance)
    for number in range(JOURNALS_PER_ROUND):
        if number % 20 == 0:
            truth = write_journal(tmp_path, chance)
        content = bytearray(truth.content)
        damage = chance.choice(DAMAGE)
        damage(content, chance)
        (tmp_path / "journal").write_bytes(content)
        journal, notices = Journal.open(tmp_path, wait_s=0.0)
        case = f"seed {seed}, journal {number}, {damage.__name__}"
        check(journal, truth, bytes(content), case)
        assert notices or one_run_of_lines(bytes(content), truth.content), case
        journal.close()


def check(journal: Journal, truth: Truth, content: bytes, case: str) -> None:
    outstanding = {one.ref: one for one in journal.outstanding()}
    for ref, one in outstanding.items():
        assert one.prior in truth.priors[ref], case
        assert set(one.ours) <= truth.ours[ref], case
    assert set(journal.groups()) <= truth.groups, case
    if content.count(b"dasec-journal") == 1 and in_order(content, truth.content):
        lines = set(content.splitlines(keepends=True))
        for ref, line in truth.newest.items():
            if line in lines and ref not in truth.settled:
                assert ref in outstanding, f"{case}: {ref}"


def one_run_of_lines(content: bytes, before: bytes) -> bool:
    """The header and lines that stood one behind the other: nobody can see that others stood before or
    behind them. A loss leaves that where it takes whole lines, or as many bytes of two that begin alike."""
    header, *lines = content.splitlines(keepends=True) or [b""]
    first_header, *first_lines = before.splitlines(keepends=True)
    runs = (first_lines[start : start + len(lines)] for start in range(len(first_lines) + 1))
    return header == first_header and lines in runs


def in_order(content: bytes, before: bytes) -> bool:
    """No intact line stands behind one that was written after it."""
    place = {line: number for number, line in enumerate(before.splitlines(keepends=True))}
    numbers = [place[line] for line in content.splitlines(keepends=True) if line in place]
    return numbers == sorted(set(numbers))
