"""Which CPUs of the free ones: such that what belongs together stays together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple, TypeVar

_T = TypeVar("_T")


class CpuPlace(NamedTuple):
    """The socket (or the NUMA node, where these are smaller) and the core of a CPU; cores of different
    sockets may have the same number."""

    socket: int
    core: int


def take(free: Collection[int], count: int, places: Mapping[int, CpuPlace]) -> frozenset[int]:
    """`count` of the free CPUs: whole free sockets first, then whole free cores, then single CPUs beside what
    is already used, so that whole sockets and cores stay free for later (rKube, section 5.2, names the
    sockets; kubelet's static policy does the rest alike). ValueError if there are fewer."""
    if count > len(free):
        raise ValueError(f"{count} CPUs of {len(free)}")
    taken: set[int] = set()
    for unit in (_socket, _core):
        taken |= _whole(set(free) - taken, count - len(taken), places, unit)
    left = sorted(set(free) - taken, key=_beside(taken, free, places))
    return frozenset(taken.union(left[: count - len(taken)]))


def _whole(
    free: set[int], count: int, places: Mapping[int, CpuPlace], unit: Callable[[CpuPlace], tuple[int, ...]]
) -> set[int]:
    """All CPUs of as many whole units as fit, the largest first; cores of the least free sockets first."""
    size = _counted(unit(place) for place in places.values())
    here = _counted(unit(places[cpu]) for cpu in free)
    free_in = _counted(places[cpu].socket for cpu in free)
    taken: set[int] = set()
    for each in sorted(here, key=lambda at: (-size[at], free_in[at[0]], at)):
        if here[each] == size[each] and size[each] <= count - len(taken):
            taken.update(cpu for cpu in free if unit(places[cpu]) == each)
    return taken


def _beside(
    taken: set[int], free: Collection[int], places: Mapping[int, CpuPlace]
) -> Callable[[int], tuple[int, int, int, int]]:
    """The order of single CPUs: in a socket of what was taken, in the least free socket, on the least free
    core."""
    ours = _counted(places[cpu].socket for cpu in taken)
    sockets = _counted(places[cpu].socket for cpu in free if cpu not in taken)
    cores = _counted(places[cpu] for cpu in free if cpu not in taken)
    return lambda cpu: (
        -ours.get(places[cpu].socket, 0),
        sockets[places[cpu].socket],
        cores[places[cpu]],
        cpu,
    )


def _socket(place: CpuPlace) -> tuple[int, ...]:
    return (place.socket,)


def _core(place: CpuPlace) -> tuple[int, ...]:
    return tuple(place)


def _counted(each: Iterable[_T]) -> Mapping[_T, int]:
    """How often each is there."""
    found: dict[_T, int] = {}
    for one in each:
        found[one] = found.get(one, 0) + 1
    return found
