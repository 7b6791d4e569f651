"""The guard: notices when a policy harms a workload, and keeps it off there (docs/guard.md).

**The rule.** A policy that has changed anything of a workload is tried: for a second or two it acts in every
other window of 160 ms and is undone in those between (`trial.py`), the whole host at once. In each window it
measures how long the vCPUs that siblings wait for waited themselves (`tally.py`). Where that is clearly
longer with the policy than without it (`judge.py`), the policy leaves the workload alone from then on, with
every knob as it was before, and is tried again much later (`verdicts.py`). Else it may act, and is tried
again seldom, or when the waits become suspicious.

It is a policy around a policy (`rule.py`): as pure as that, with a state that holds the inner one's, so that
a record decides itself again.
"""

from .parameters import GuardParameters
from .rule import Guarded
from .state import GuardStanding, GuardState, Verdict

__all__ = ["GuardParameters", "GuardState", "Guarded", "GuardStanding", "Verdict"]
