"""What every host offers: capabilities, observe, apply, restore. Nothing else touches a kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import NamedTuple, Protocol

from ..model import Change, Core, Result, Snapshot


class Terms(NamedTuple):
    """What is known of a thread that somebody else made and keeps, libvirt for one: which thread it has to
    be, and the cores that he lets it use (None: any). Its groups are his: it never gets one of ours."""

    start_ticks: int
    cores: frozenset[Core] | None


class RosterEntry(NamedTuple):
    """One workload as discovery sees it: its name, its share if one was configured, and its
    threads as (pid, tid) pairs. The host turns it into a Workload of identified vCPUs.

    `terms`: one for each thread, in order, or none at all. `home`: the group around the whole workload, where
    discovery knows it better than the threads show (a single vCPU sits in a group of its own).
    """

    name: str
    share: int | None
    threads: tuple[tuple[int, int], ...]
    terms: tuple[Terms, ...] = ()
    home: str | None = None

    def terms_of(self) -> Iterator[tuple[tuple[int, int], Terms | None]]:
        """Each thread with its terms."""
        return zip(self.threads, self.terms or repeat(None, len(self.threads)), strict=True)


class Finding(NamedTuple):
    """Does it work, and how or why not."""

    works: bool
    note: str


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What this host can do, found by trying. Each `*_note` says how, or why not."""

    backend: str
    weight: bool
    weight_note: str
    rescheduling_latency: bool
    rescheduling_latency_note: str
    affinity: bool
    affinity_note: str
    wake_edges: bool
    wake_edges_note: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Restored:
    """What `restore` did: knobs put back, knobs left alone because somebody else changed
    them since, knobs whose thread is gone, and knobs that could not be put back (with why)."""

    put_back: int
    left_alone: tuple[str, ...]
    vanished: int
    failed: tuple[str, ...]


class Host(Protocol):
    """A kernel, or a fake of one. Implementations pass tests/contract/."""

    @property
    def capabilities(self) -> Capabilities:
        """What this host can do; probed once, when the host is made."""

    def observe(self, roster: Sequence[RosterEntry]) -> Snapshot:
        """The state of every vCPU of the roster now. A vanished thread is left out, never an error."""

    def apply(self, changes: Sequence[Change]) -> tuple[Result, ...]:
        """Journal, check identity, write. One Result a Change, in order; never raises for one thread."""

    def restore(self) -> Restored:
        """Put every knob that we hold back to its prior value. Idempotent."""
