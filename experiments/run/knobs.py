"""The knobs of every vCPU at the end of a run, whoever set them: the same look for every arm."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter

from dasec.lab.kit.tree import Tree
from dasec.linux import affinity, schedattr
from dasec.linux.cgroupfs import Hierarchy
from dasec.linux.errors import ThreadGone

FILE = "knobs.json"


@dataclass(frozen=True, slots=True)
class ThreadKnobs:
    """What the kernel has for one thread."""

    instance: str
    name: str
    weight: int | None
    """Of its own group, as the hierarchy has it: 1024 is neutral on v1, 100 on v2. None: in Docker's."""
    slice_ns: int
    cpus: int
    """How many it may run on."""


_KNOBS = TypeAdapter(tuple[ThreadKnobs, ...])


def look(
    tree: Tree, hierarchy: Hierarchy, vcpus: Mapping[str, Sequence[tuple[int, int, str]]]
) -> list[ThreadKnobs]:
    """The vCPUs of all instances; those that have ended are left out."""
    weights = tree.weights()
    found = []
    for instance, threads in vcpus.items():
        for pid, tid, name in threads:
            with contextlib.suppress(OSError, ThreadGone):
                group = hierarchy.group_of(pid, tid).removeprefix(f"{tree.name}/")
                attr, cpus = schedattr.get(tid), affinity.get(tid)
                found.append(ThreadKnobs(instance, name, weights.get(group), attr.slice_ns, len(cpus)))
    return found


def write(folder: Path, knobs: Iterable[ThreadKnobs]) -> None:
    """Beside the other raw results of a run."""
    text = json.dumps([asdict(one) for one in knobs], indent=1)
    (folder / FILE).write_text(text + "\n", encoding="utf-8")


def read(folder: Path) -> tuple[ThreadKnobs, ...]:
    """What was written there; nothing if nothing was."""
    file = folder / FILE
    return _KNOBS.validate_json(file.read_bytes()) if file.exists() else ()


@dataclass(frozen=True, slots=True)
class Spread:
    """The knobs of an arm in all its runs, in short."""

    weight_ratio: float | None
    """The largest weight over the smallest, within an instance; of all instances the largest. None: nobody
    is in a group of ours."""
    least_slice_ms: float
    most_slice_ms: float
    pinned: float
    """The part of the threads that may not run everywhere."""


def spread(runs: Sequence[Sequence[ThreadKnobs]], cores: int) -> Spread | None:
    """Over all runs of an arm; None if there is nothing."""
    threads = [one for run in runs for one in run]
    if not threads:
        return None
    by_instance = (_ratio(run, name) for run in runs for name in {one.instance for one in run})
    return Spread(
        max((ratio for ratio in by_instance if ratio is not None), default=None),
        min(one.slice_ns for one in threads) / 1e6,
        max(one.slice_ns for one in threads) / 1e6,
        sum(one.cpus < cores for one in threads) / len(threads),
    )


def _ratio(run: Sequence[ThreadKnobs], instance: str) -> float | None:
    weights = [one.weight for one in run if one.instance == instance and one.weight]
    return max(weights) / min(weights) if weights else None
