"""A look that does not follow on the one before: time has passed that was no period of the host's.

The machine was suspended, the daemon was stopped, or it got no core. Between two such looks the kernel's
counters hold waits that nobody had (a suspended guest's monotonic clock may run on), or a stretch of many
periods, for which no rule is made. So nothing is decided from it: knobs stay, and counting begins anew.
"""

from __future__ import annotations

from .model import Snapshot

LONGEST_NS = 5_000_000_000
"""So much later than it was due a look may be and still count: three of the longest rests (budget.py), half
of the time after which a service manager takes us for dead (packaging/systemd/dasec.service)."""


def gap_between(before: Snapshot | None, after: Snapshot | None, due_ns: int) -> str | None:
    """Why the time between two looks, the later one due after `due_ns`, is no period; None if it is one, or
    one look failed."""
    if before is None or after is None:
        return None
    length_ns = after.clock_ns - before.clock_ns
    if length_ns <= 0:
        return f"the monotonic clock went back by {-length_ns / 1e9:.1f} s: knobs stay, counting begins anew"
    if length_ns - due_ns > LONGEST_NS:
        return (
            f"saw nothing for {length_ns / 1e9:.0f} s (machine suspended, daemon stopped, or no core for it):"
            " knobs stay, counting begins anew"
        )
    return None
