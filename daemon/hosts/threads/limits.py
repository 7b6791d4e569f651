"""What limits each workload: looked at each period, only for workloads that have a limit."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from ...knobs.quotas import QUOTA
from ...linux import bandwidth, cgroupfs
from ...linux.bandwidth import GroupUse
from ...linux.cgroupfs import Hierarchy
from ...linux.errors import ThreadGone
from ...linux.watch import FileWatch
from ...model import CORE_PPM, Limits, OwnLimit, VcpuId
from .thread import ManagedThread
from .totals import Counting, SeenTotals

_UNUSED = GroupUse(0, 0)


class Limited(NamedTuple):
    """A workload, its tightest limit in millionths of a core, the directory of the group that has it (0 and
    empty: there is none around all of its threads), those of its threads whose own group may be limited, and
    how many it has."""

    workload: str
    around_ppm: int
    directory: str
    threads: Sequence[ManagedThread]
    size: int = 0


class LimitLooks:
    """Reads the counters of limited groups."""

    def __init__(self, hierarchy: Hierarchy | None) -> None:
        self._hierarchy = hierarchy
        self.limited: tuple[Limited, ...] = ()
        self._files = FileWatch()
        self._owners: dict[str, ManagedThread] = {}
        self._named: set[str] = set()
        self._used: dict[str, SeenTotals] = {}
        self._around: dict[str, SeenTotals] = {}
        self._stops: dict[VcpuId, SeenTotals] = {}

    def follow(self, homes: Mapping[str, str], threads: Collection[ManagedThread]) -> None:
        """These are the groups around all threads of a workload, of those that have one, and all threads.
        Caps are shown also where the limit has gone, or the group: so they can go, too."""
        if self._hierarchy is None:
            return
        names = dict.fromkeys((*homes, *(each.workload for each in threads if QUOTA in each.held)))
        members: dict[str, list[ManagedThread]] = {name: [] for name in names}
        sizes = dict.fromkeys(names, 0)
        self._named.intersection_update(homes)
        owners: dict[str, ManagedThread] = {}
        for thread in threads:
            if thread.workload in sizes:
                sizes[thread.workload] += 1
            if thread.workload in members and self._sees_quota(self._hierarchy, thread):
                members[thread.workload].append(thread)
                owners.update(dict.fromkeys(_files_of(self._hierarchy, thread), thread))
        self._watch(owners)
        self._count(names, [thread for group in members.values() for thread in group])
        self.limited = tuple(
            one._replace(size=sizes[name])
            for name in names
            if (one := self._limit(self._hierarchy, name, homes.get(name), members[name])) is not None
        )

    def uncappable(self) -> Sequence[str]:
        """Workloads of several threads with a limit around them, none of which has or may get a group of its
        own; each once."""
        found = {one.workload for one in self.limited if one.around_ppm and one.size > 1 and not one.threads}
        new = sorted(found - self._named)
        self._named.update(new)
        return new

    def of_their_own(self, homes: Mapping[str, str]) -> tuple[Limited, ...]:
        """Those whose tightest limit is that of their own group. One further up is others', too."""
        if self._hierarchy is None:
            return ()
        places = {name: self._hierarchy.directory(home) for name, home in homes.items()}
        return tuple(one for one in self.limited if one.directory == places.get(one.workload))

    def suspects(self) -> tuple[ManagedThread, ...]:
        """Whose own quota was written since the last look, by whomever; all of them where nobody can say."""
        if not self._owners:
            return ()
        written = self._files.written() if self._files.complete else self._owners
        return tuple(thread for file, thread in self._owners.items() if file in written)

    def given_anew(self, threads: Iterable[ManagedThread]) -> bool:
        """Has one of these another quota by now that is not from us?"""
        before = [(thread, thread.given_quota) for thread in threads]
        return any(
            self._hierarchy is None
            or not self._sees_quota(self._hierarchy, thread)
            or thread.given_quota != given
            for thread, given in before
        )

    def close(self) -> None:
        """End all watches."""
        self._files.close()

    def take(self) -> dict[str, Limits]:
        """Totals as they are now. A group that vanished limits nobody."""
        found: dict[str, Limits] = {}
        for workload, around_ppm, directory, threads, _ in self.limited:
            try:
                used_ns, throttled_ns = (bandwidth.usage_of(directory) if directory else _UNUSED)[:2]
            except (ThreadGone, OSError):
                continue
            own = {thread.id: self._own(thread) for thread in threads if thread.takes_caps}
            stopped: dict[Counting, int] = {directory: throttled_ns}
            stopped.update((vcpu, one.throttled_ns) for vcpu, one in own.items() if one.given_ppm)
            found[workload] = Limits(
                around_ppm,
                self._used[workload].look({directory: used_ns}),
                self._around[workload].look(stopped),
                own,
            )
        return found

    def _count(self, homes: Iterable[str], threads: Iterable[ManagedThread]) -> None:
        """Totals of all these; of whom there were some already those go on."""
        self._used = {name: self._used.get(name) or SeenTotals({}) for name in homes}
        self._around = {name: self._around.get(name) or SeenTotals({}) for name in homes}
        self._stops = {
            each.id: self._stops.get(each.id) or SeenTotals(self._before_us(each)) for each in threads
        }

    def _before_us(self, thread: ManagedThread) -> Mapping[Counting, int]:
        """For how long its own group was stopped before anybody looked, by an earlier limit or daemon."""
        place = thread.weight
        if place is None or self._hierarchy is None:
            return {}
        directory = self._hierarchy.directory(place.group)
        try:
            return {directory: bandwidth.usage_of(directory).throttled_ns if place.made else 0}
        except (ThreadGone, OSError):
            return {}

    def _watch(self, owners: dict[str, ManagedThread]) -> None:
        for file in self._owners.keys() - owners:
            self._files.drop(file)
        for file in owners.keys() - self._owners:
            self._files.add(file)
        self._owners = owners

    @staticmethod
    def _limit(
        hierarchy: Hierarchy, workload: str, home: str | None, threads: Sequence[ManagedThread]
    ) -> Limited | None:
        """Where some have a quota of their own and others have not, only the others can be capped; and those
        that hold a loan give it back. So do those that hold a cap where there is no limit any more."""
        is_divided = bool(threads) and all(thread.given_quota for thread in threads)
        tightest = None if home is None else cgroupfs.tightest_quota(hierarchy, home)
        if not is_divided:
            threads = [one for one in threads if not one.given_quota or QUOTA in one.held]
        if tightest is not None:
            group, cores = tightest
            return Limited(workload, int(cores * CORE_PPM), hierarchy.directory(group), threads)
        is_held = any(QUOTA in thread.held for thread in threads)
        return Limited(workload, 0, "", threads) if is_divided or is_held else None

    @staticmethod
    def _sees_quota(hierarchy: Hierarchy, thread: ManagedThread) -> bool:
        """Is there a group for it alone whose quota is known? Remembers what others gave it."""
        place = thread.weight
        if place is None or not thread.takes_caps:
            return False
        held = thread.held.get(QUOTA)
        try:
            if held is not None:
                quota = str(held.prior)
            elif place.made:
                quota = bandwidth.read_quota(bandwidth.quota_file(hierarchy, place.group))
            else:
                quota = bandwidth.NO_QUOTA
        except (ThreadGone, OSError):
            return False
        thread.given_quota = "" if quota.startswith(bandwidth.NO_QUOTA) else quota
        return True

    def _own(self, thread: ManagedThread) -> OwnLimit:
        held, place = thread.held.get(QUOTA), thread.weight
        present_ppm = held.value if held is not None and isinstance(held.value, int) else 0
        given_ppm = bandwidth.cores_of(thread.given_quota) * CORE_PPM if thread.given_quota else 0
        stopped = self._stops[thread.id]
        if place is None or self._hierarchy is None or not (present_ppm or given_ppm):
            return OwnLimit(0, stopped.sum_ns)
        directory = held.ref.group.directory if held else self._hierarchy.directory(place.group)
        with suppress(ThreadGone, OSError):  # it has gone, or is asked again at the next look
            stopped.look({directory: bandwidth.usage_of(directory).throttled_ns})
        return OwnLimit(present_ppm, stopped.sum_ns, int(given_ppm))


def _files_of(hierarchy: Hierarchy, thread: ManagedThread) -> tuple[str, ...]:
    """Those of a group that was there before us: nobody else gives our own groups a quota."""
    place = thread.weight
    return cgroupfs.quota_files_at(hierarchy, place.group) if place and not place.origin else ()
