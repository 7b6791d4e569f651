"""Random periods: anything that a host can report, plain and strange, small enough to read when it fails."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from dasec.model import Core, Period, ThreadState, Topology, Usage, Workload
from dasec.paper import DasecState

from ..builders import ASLEEP, Group, Row, period, vcpu_id

MAX_CORES = 5
MAX_ROWS = 7

states = st.sampled_from(list(ThreadState))
names = ("a", "b", "c")


@st.composite
def rows(draw: st.DrawFn, cores: int, siblings: int) -> Row:
    """One vCPU that is on one of the cores that it may use."""
    allowed = draw(st.sets(st.integers(0, cores - 1), min_size=1).map(sorted) | st.just(list(range(cores))))
    state = draw(states)
    return Row(
        consumed_ms=draw(st.integers(0, 80)),
        state=state,
        weight=draw(st.just(1024) | st.none() | st.integers(2, 5000)),
        latency_us=draw(st.sampled_from([1400, 1400, 4000, 12000, None]) | st.integers(100, 20000)),
        core=draw(st.sampled_from(allowed)),
        ready_ms=draw(st.integers(0, 80)),
        dispatches=draw(st.integers(0, 40)),
        conflicts=draw(st.integers(0, 12)),
        woken_by=draw(
            st.lists(
                st.tuples(st.integers(0, siblings), st.integers(1, 9)), max_size=3, unique_by=lambda x: x[0]
            )
        ),
        allowed=allowed,
        movable=draw(st.integers(0, 5)) > 0,
        new=draw(st.integers(0, 7)) == 0,
        emulator=draw(st.integers(0, 7)) == 0,
        **draw(st.just({}) | counted()),
    )


def counted() -> st.SearchStrategy[dict[str, int]]:
    """What only some hosts count; any numbers, fitting or not."""
    return st.fixed_dictionaries(
        {"wakeups": st.integers(0, 60), "external": st.integers(0, 60)},
        optional={"chain_ms": st.integers(0, 160)},
    )


@st.composite
def groups(draw: st.DrawFn, name: str, cores: int) -> Group:
    """One workload. QEMU's main thread is never all of it."""
    count = draw(st.integers(1, MAX_ROWS))
    first, *others = draw(st.lists(rows(cores, count), min_size=count, max_size=count))
    return Group(
        name,
        [replace(first, emulator=False), *others],
        share=draw(st.sampled_from([512, 1024, 2048])),
        quota_cores=draw(st.none() | st.sampled_from([0.25, 1.0, 3.5])),
        nested=draw(st.booleans()),
    )


@st.composite
def periods(draw: st.DrawFn) -> Period:
    """One to three workloads on one to five cores in one or two NUMA nodes, some small or siblings."""
    cores = draw(st.integers(1, MAX_CORES))
    nodes = draw(st.lists(st.integers(0, 1), min_size=cores, max_size=cores) | st.just([0] * cores))
    used = names[: draw(st.integers(1, len(names)))]
    made = period(*[draw(groups(name, cores)) for name in used], cores=cores, nodes=nodes)
    return replace(made, topology=draw(uneven(made.topology)))


def uneven(even: Topology) -> st.SearchStrategy[Topology]:
    """The same cores, as they are or with capacities and physical cores."""

    def table(number: st.SearchStrategy[int]) -> st.SearchStrategy[dict[Core, int]]:
        return st.fixed_dictionaries(dict.fromkeys(even.cores, number))

    made = st.builds(
        replace,
        st.just(even),
        capacity_of=table(st.sampled_from((446, 1024))),
        whole_of=table(st.integers(0, 2)),
    )
    return st.just(even) | made


@st.composite
def remembered(draw: st.DrawFn, made: Period) -> DasecState:
    """What the policy may remember in that period: some seen, some moved, some of them gone."""
    ids = [*made.knobs, vcpu_id(8, 1), vcpu_id(8, 2)]
    started = draw(st.just(tuple(made.knobs)) | st.lists(st.sampled_from(ids), unique=True).map(tuple))
    moved = draw(
        st.dictionaries(st.sampled_from(ids), st.integers(made.index - 20, made.index - 1), max_size=3)
    )
    return DasecState(started, tuple(moved.items()))


@st.composite
def periods_and_states(draw: st.DrawFn) -> tuple[Period, DasecState]:
    made = draw(periods())
    return made, draw(remembered(made))


@st.composite
def shuffled(draw: st.DrawFn, made: Period) -> Period:
    """The same period with workloads, vCPUs and tables in another order."""

    def workload(each: Workload) -> Workload:
        return replace(each, vcpus=tuple(draw(st.permutations(each.vcpus))))

    return replace(
        made,
        workloads=tuple(draw(st.permutations([workload(each) for each in made.workloads]))),
        knobs=dict(draw(st.permutations(list(made.knobs.items())))),
        usage=dict(draw(st.permutations(list(made.usage.items())))),
    )


@st.composite
def exact_periods(draw: st.DrawFn) -> Period:
    """Periods in which no division leaves a remainder, so that scaled times scale every result exactly."""
    cores = draw(st.integers(1, 4))
    made = [draw(exact_groups(name, cores)) for name in names[: draw(st.integers(1, 3))]]
    return exact(period(*made, cores=cores))


@st.composite
def exact_groups(draw: st.DrawFn, name: str, cores: int) -> Group:
    """A power of two of vCPUs whose weights add up to 1024 for each; latencies that 360 divides."""
    count = draw(st.sampled_from([1, 2, 4, 8]))
    weights = [1024] * count
    for row in range(0, count - 1, 2):
        shift = draw(st.integers(-800, 800))
        weights[row], weights[row + 1] = 1024 + shift, 1024 - shift
    wakers = st.sampled_from([[], [(0, 1)], [(0, 1), (1, 1)], [(0, 1), (1, 2), (2, 1)]])
    made = [
        Row(
            consumed_ms=draw(st.integers(0, 120)),
            state=draw(states),
            weight=weight,
            latency_us=draw(st.sampled_from([1440, 1800, 3600, 7200, 10800, 12600])),
            core=draw(st.integers(0, cores - 1)),
            dispatches=draw(st.integers(0, 6)),
            conflicts=draw(st.integers(0, 12)),
            woken_by=[pair for pair in draw(wakers) if pair[0] < count],
        )
        for weight in weights
    ]
    return Group(name, made, share=draw(st.sampled_from([1024, 2048, 4096])))


LENGTH_NS = 2**17 * 3465
"""Divisible by 1 … 12 (sums of shares), by 2 ** 13 (sums of weights), and by 10 after both."""


def exact(made: Period) -> Period:
    """The period stretched to a length that every divisor of the rules divides."""
    unit = LENGTH_NS // 120
    usage = {
        vcpu: used if used.state is ASLEEP and not used.consumed_ns else _in_units(used, unit)
        for vcpu, used in made.usage.items()
    }
    return replace(made, length_ns=LENGTH_NS, usage=usage)


def _in_units(used: Usage, unit: int) -> Usage:
    return used._replace(consumed_ns=used.consumed_ns // 1_000_000 * (unit // 60 * 60))


def scaled(made: Period, factor: int) -> Period:
    """The same period with every time multiplied."""
    return replace(
        made,
        length_ns=made.length_ns * factor,
        usage={
            vcpu: used._replace(consumed_ns=used.consumed_ns * factor, ready_ns=used.ready_ns * factor)
            for vcpu, used in made.usage.items()
        },
        knobs={
            vcpu: knobs._replace(rescheduling_latency_ns=times(knobs.rescheduling_latency_ns, factor))
            for vcpu, knobs in made.knobs.items()
        },
    )


def times(value: int | None, factor: int) -> int | None:
    return None if value is None else value * factor
