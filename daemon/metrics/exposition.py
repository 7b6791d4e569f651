"""Prometheus' text format, version 0.0.4: families of samples as lines.

Written here and not by prometheus_client: with 256 vCPUs the daemon renders 5400 lines, and every millisecond
of that is the control loop's (docs/decisions/0027-operators.md). Its parser judges ours in the tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

WAIT_BOUNDS_NS = (
    *(100_000, 500_000, 1_000_000, 2_000_000, 4_000_000, 8_000_000),
    *(16_000_000, 32_000_000, 80_000_000, 160_000_000),
)
"""Upper ends of buckets, in ns: from a wake-up that nobody noticed to two default periods, which no vCPU
may have to wait. The kernel's slices, 0.1 to 100 ms, lie between (docs/measurements.md, "Slice as
rescheduling latency")."""


def seconds(bound_ns: int) -> str:
    """A time in ns as a sample's value."""
    return repr(bound_ns / 1e9)


BUCKETS = (*map(seconds, WAIT_BOUNDS_NS), "+Inf")


def labels(**values: str) -> str:
    """`{workload="cache",tid="7"}`, with what the format wants escaped."""
    return "{" + ",".join(f'{name}="{escaped(value)}"' for name, value in values.items()) + "}"


def escaped(value: str) -> str:
    """A label's value: backslashes, quotes and line feeds have a backslash before them."""
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def head(name: str, kind: str, text: str) -> str:
    """What comes before the samples of a family."""
    return f"# HELP {name} {text}\n# TYPE {name} {kind}\n"


def one(name: str, kind: str, text: str, value: float | str) -> str:
    """A family of one sample without labels."""
    return f"{head(name, kind, text)}{name} {value}\n"


def family(name: str, kind: str, text: str, samples: Iterable[tuple[str, float | str]]) -> str:
    """A family of samples, each with its labels; nothing at all where there are none."""
    lines = [f"{name}{given} {value}\n" for given, value in samples]
    return head(name, kind, text) + "".join(lines) if lines else ""


def counts(name: str, text: str, label: str, values: Mapping[str, int]) -> str:
    """A family of counters, told apart by one label."""
    return family(name, "counter", text, [(labels(**{label: key}), values[key]) for key in values])


class Buckets:
    """The `le` lines of one histogram: their labels, made once."""

    __slots__ = ("_given", "_prefixes")

    def __init__(self, given: str) -> None:
        self._given = given
        self._prefixes = tuple(f'_bucket{given[:-1]},le="{bound}"}} ' for bound in BUCKETS)

    def lines(self, name: str, tallies: Sequence[int], sum_ns: int) -> str:
        """The samples of a histogram whose buckets hold so many each."""
        rising = list(accumulate(tallies))
        buckets = [f"{name}{prefix}{count}\n" for prefix, count in zip(self._prefixes, rising, strict=True)]
        given, total = self._given, rising[-1]
        return f"{''.join(buckets)}{name}_sum{given} {seconds(sum_ns)}\n{name}_count{given} {total}\n"
