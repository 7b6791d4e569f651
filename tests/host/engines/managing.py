"""A whole daemon beside an engine, what it does to a container, and what it must not do to others."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from dasec.knobs.knob import NativeValue
from dasec.lab.kit.process import name_of
from dasec.linux import cgroupfs, procfs
from dasec.model import VcpuId
from dasec.safety.fingerprint import fingerprint
from dasec.safety.journal.journal import peek
from dasec.safety.verify import verify
from guests.engines.engine import PROGRAM, Engine
from guests.engines.place import Place
from guests.waiting import gone, wait_for
from tests.chaos import shuffle

from ..running import Running

RESTLESS = """
policy = "shuffle"
period_ms = 20
budget_percent = 100
[guard]
enabled = false
[host]
own_cgroups = true
weights = "on"
on_foreign_write = "{foreign}"
"""
"""Every knob of every thread is written anew in nearly every period."""

Threads = Mapping[VcpuId, Mapping[str, NativeValue]]


def restless(*patterns: str, foreign: str = "yield") -> str:
    """The daemon is told to do so with the containers of these patterns."""
    tables = (f'[[workload]]\nname = "{one}"\ncontainer = "{one}"\n' for one in patterns)
    return RESTLESS.format(foreign=foreign) + "".join(tables)


class Daemon(Running):
    """It sees the files that the engine sees, and keeps a record."""

    def __init__(self, place: Place, folder: Path, told: str) -> None:
        folder.mkdir(exist_ok=True)
        config, self._record = folder / "dasec.toml", folder / "record"
        config.write_text(told)
        super().__init__(folder, config, shuffle.__file__, record=self._record, within=place.files())

    def names(self) -> set[str]:
        """Of the workloads in its last status."""
        return {one["name"] for one in self.status()["workloads"]}

    def end(self, by: signal.Signals) -> None:
        """By that signal, until all is put back, by itself or by its keeper."""
        os.kill(self.pid, by)
        wait_for(lambda: gone(self.pid) and self._holds_nothing())
        assert verify(self.state) == ()

    def _holds_nothing(self) -> bool:
        ledger = peek(self.state).ledger
        return not ledger.held and not ledger.groups

    def looks(self) -> Iterator[tuple[int, Mapping[str, set[int]]]]:
        """When each was, and the processes of each workload then."""
        seen: Mapping[str, set[int]] = {}
        for line in self._record.read_bytes().split(b"\n")[:-1]:  # the last one is being written
            said = json.loads(line)
            if "workloads" in said:
                seen = {one["name"]: {vcpu[0] for vcpu in one["vcpus"]} for one in said["workloads"]}
            if "period" in said:
                yield said["clock_ns"], seen

    def second_look(self, since_ns: int) -> Mapping[str, set[int]]:
        """The processes of each workload at the second look from then on."""
        return [seen for clock_ns, seen in self.looks() if clock_ns > since_ns][1]


class Inhabitants(NamedTuple):
    """All threads of a container, and all groups of it, with all that could be changed."""

    threads: Threads
    groups: Mapping[str, Mapping[str, NativeValue]]

    @property
    def pids(self) -> set[int]:
        """Its processes."""
        return {vcpu.pid for vcpu in self.threads}


def inhabitants(group: str) -> Inhabitants:
    """Of that cpu group."""
    hierarchy = cgroupfs.find_hierarchy()
    directory = hierarchy.directory(group)
    tids = {tid for each in hierarchy.below(group).groups for tid in hierarchy.members(each)}
    found = fingerprint(sorted(tids.intersection(procfs.process_ids())))
    groups = {path: holds for path, holds in found.groups.items() if f"{path}/".startswith(f"{directory}/")}
    return Inhabitants(found.threads, groups)


def running(group: str) -> int:
    """So many processes of a container run its program; 0 while any is still the runtime's own."""
    try:
        found = [name_of(vcpu.pid, vcpu.tid) for vcpu in inhabitants(group).threads]
    except OSError:
        return 0
    return len(found) if {*found} == {Path(PROGRAM[0]).name} else 0


def group_of(pid: int) -> str:
    """The cpu group of a container, by its first process, before anybody moved it."""
    return cgroupfs.find_hierarchy().group_of(pid, pid)


def outsiders(place: Place, *groups: str) -> Threads:
    """Engines, monitors, pause containers, and containers that nobody named: all in the place that are not in
    these groups."""
    inside = {pid for group in groups for pid in inhabitants(group).pids}
    return fingerprint(sorted(place.processes() - inside)).threads


def changed(before: Threads, after: Threads) -> list[str]:
    """Whoever is not as before; who came or went is."""
    both = before.keys() & after.keys()
    return [f"{vcpu}: {before[vcpu]} is {after[vcpu]}" for vcpu in both if before[vcpu] != after[vcpu]]


@contextmanager
def of_two(engine: Engine, name: str) -> Iterator[str]:
    """The group of a container of two processes, so that weights can go from one to the other."""
    engine.start(name)
    try:
        group = group_of(engine.pid(name))
        engine.execute(name)
        wait_for(lambda: running(group) == 2)
        yield group
    finally:
        engine.remove(name)
