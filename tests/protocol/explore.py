"""Breadth first through all states of a world, each once; a violation comes with the shortest way to it.

A world is frozen as bytes (pickle), thawed for each action, and known again by a digest of them. Nothing
here is random and nothing is cut: the bounds are in the worlds, which offer fewer actions as they run out.
"""

from __future__ import annotations

import copyreg
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple, Protocol, Self, TypeVar

from dasec.knobs.knob import NativeKnob
from dasec.knobs.table import TABLE, named


class Wrong(Exception):
    """An invariant does not hold. The text says which, of whom."""


class Explorable(Protocol):
    """A state with ways to go on. Two of them are the same if they are frozen to the same bytes."""

    def actions(self) -> tuple[str, ...]:
        """What may happen now, in a fixed order."""

    def act(self, action: str, freeze: bytes) -> Iterator[tuple[str, Self]]:
        """Every way in which it may go, each described; `freeze` is this state, to begin anew from."""

    def check(self) -> None:
        """What must hold in every state. Raises Wrong."""


@dataclass(frozen=True)
class Found:
    """How much was seen, and what was wrong."""

    states: int
    transitions: int
    depth: int
    wrong: str = ""
    trace: tuple[str, ...] = ()

    def __str__(self) -> str:
        seen = f"{self.states} states, {self.transitions} transitions, depth {self.depth}"
        steps = "".join(f"\n  {at}. {step}" for at, step in enumerate(self.trace, 1))
        return f"{self.wrong}{steps}\n({seen})" if self.wrong else seen


class _Node(NamedTuple):
    frozen: bytes
    step: str
    before: _Node | None
    depth: int


def _by_name(kind: NativeKnob) -> tuple[object, tuple[str]]:
    """There is one of each kind, and it stays the same one."""
    return named, (kind.name,)


for each in {type(kind) for kind in TABLE}:
    copyreg.pickle(each, _by_name)  # type: ignore[arg-type]


def freeze(world: object) -> bytes:
    """The whole state, as it is."""
    return pickle.dumps(world, protocol=5)


World = TypeVar("World", bound=Explorable)


def explore(start: World) -> Found:
    """All states that can be reached from this one, or the way to the first wrong one."""
    first = _Node(freeze(start), "", None, 0)
    seen = {_digest(first.frozen)}
    level = [first]
    transitions = depth = 0
    while level:
        following: list[_Node] = []
        for node in level:
            here: World = pickle.loads(node.frozen)
            for action in here.actions():
                try:
                    for step, world in here.act(action, node.frozen):
                        transitions += 1
                        reached = _Node(b"", step, node, node.depth + 1)
                        try:
                            world.check()
                        except Wrong as wrong:
                            return Found(len(seen), transitions, reached.depth, str(wrong), _trace(reached))
                        reached = reached._replace(frozen=freeze(world))
                        digest = _digest(reached.frozen)
                        if digest not in seen:
                            seen.add(digest)
                            depth = reached.depth
                            following.append(reached)
                except Wrong as wrong:
                    trace = (*_trace(node), action)
                    return Found(len(seen), transitions, node.depth + 1, str(wrong), trace)
        level = following
    return Found(len(seen), transitions, depth)


def _digest(frozen: bytes) -> bytes:
    return blake2b(frozen, digest_size=16).digest()


def _trace(node: _Node) -> tuple[str, ...]:
    steps: list[str] = []
    at: _Node | None = node
    while at is not None and at.before is not None:
        steps.append(at.step)
        at = at.before
    return tuple(reversed(steps))
