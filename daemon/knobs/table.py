"""All kinds of knobs, in the order in which they are put back.

Policies first: a thread of SCHED_EXT takes no slice. Then slices and masks, they are per thread; then
weights; then bursts, below which no quota may be; then quotas, of which the groups around may allow no more;
then the group that a thread is in; and when groups of ours are gone, what those needed.
A new kind is a file beside this one, its line here, and a new number of the journal's schema once one with
the old number was released: a version that does not know a kind would take its lines for damage.
"""

from __future__ import annotations

from .bursts import BURST
from .groups import CGROUP, CONTROLLERS
from .knob import NativeKnob
from .masks import AFFINITY
from .nice import NICE
from .patched import GRANULARITY, THREAD_WEIGHT
from .policies import POLICY
from .quotas import QUOTA
from .realtime import REAL_TIME
from .slices import SLICE
from .weights import WEIGHT_V1, WEIGHT_V2
from .words import EXT_LATENCY, EXT_WEIGHT

TABLE: tuple[NativeKnob, ...] = (
    POLICY,
    REAL_TIME,
    SLICE,
    GRANULARITY,
    EXT_LATENCY,
    AFFINITY,
    THREAD_WEIGHT,
    EXT_WEIGHT,
    NICE,
    WEIGHT_V1,
    WEIGHT_V2,
    BURST,
    QUOTA,
    CGROUP,
    CONTROLLERS,
)

INHERITED = tuple(kind for kind in TABLE if kind.inherited)

_BY_NAME = {kind.name: kind for kind in TABLE}


def named(name: str) -> NativeKnob:
    """The kind that a journal calls so. Raises KeyError: another version's."""
    return _BY_NAME[name]
