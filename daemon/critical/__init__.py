"""Our own policy: CPU time goes to the vCPUs that siblings and clients wait for (docs/critical.md).

**The rule.** In each workload every vCPU gets a score between 0 and 1 from who wakes whom (`rank.py`) and
from what its bursts continue (`scores.py`), remembered over half a second (`memory.py`). Weights follow the
scores in a range of 7 : 1, so that the workload as a whole competes with others as it would without us
(`weights.py`, and `crowd.py` for what can be had at all). Who yields may also start later (`latency.py`).

It is not in the paper. TSA gives weight to whoever is hungry, which beside long background bursts is the
background; this gives it to whoever is waited for.
"""

from .parameters import MAX_LATENCY_PERCENT, MAX_WEIGHT_RATIO, CriticalParameters, Fairness
from .rule import Critical
from .state import CriticalState

__all__ = [
    "MAX_LATENCY_PERCENT",
    "MAX_WEIGHT_RATIO",
    "Critical",
    "CriticalParameters",
    "CriticalState",
    "Fairness",
]
