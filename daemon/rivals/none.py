"""The policy that never changes anything: what every other policy is compared with."""

from __future__ import annotations

from dataclasses import dataclass

from ..model import Decision, Period, PolicyState
from ..policy import Kind


@dataclass(frozen=True, slots=True)
class Untouched:
    """Leaves the host to its kernel."""

    name: str = "none"

    def initial_state(self) -> PolicyState:
        """Nothing to remember."""
        return PolicyState()

    def decide(self, period: Period, state: PolicyState) -> Decision:
        """No change, whatever happened."""
        return Decision(state=state)


KIND = Kind("none", lambda parameters: Untouched())
