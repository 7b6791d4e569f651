"""Which runs there are, and in which order."""

from __future__ import annotations

import random
from collections.abc import Sequence

NONE = "none"
"""The plain host: no daemon runs at all."""

CONTROL = "none-again"
"""The plain host a second time: what differs between these two is noise (A/A)."""

WATCHED = "watched"
"""The plain host with a daemon beside it, which looks and changes nothing."""

NO_LIMIT = "no-limit"
"""The plain host without the CPU limits that the workloads have in all other arms."""

SCX = "scx"
"""Our sched_ext scheduler, and no daemon: for kernels that have it."""

ON_SCX = f"{SCX}:"
"""Before a policy: the daemon on our sched_ext scheduler, with that policy."""

GUARDED = "+guard"
"""At the end of an arm's name: the policy under the guard. Without it, the policy itself is measured."""


def settings_of(arm: str) -> str:
    """What the daemon is told under an arm: its policy, guarded or not."""
    guarded = "true" if arm.endswith(GUARDED) else "false"
    policy = NONE if arm == WATCHED else arm.removesuffix(GUARDED)
    return f'policy = "{policy}"\n\n[guard]\nenabled = {guarded}\n'


def on_our_scheduler(settings: str, vm_level: int) -> str:
    """What the daemon is told where it is told this on the kernel's own scheduler."""
    return f'{settings}\n[host]\nbackend = "sched_ext"\nvm_level = {vm_level}\n'


def arms_for(policies: Sequence[str]) -> tuple[str, ...]:
    """The default, its control, and each policy once."""
    return (NONE, CONTROL, *dict.fromkeys(policy for policy in policies if policy != NONE))


def schedule(arms: Sequence[str], repetitions: int, seed: int) -> tuple[tuple[str, ...], ...]:
    """The order of the arms in each repetition: shuffled each time, the same for the same seed."""
    shuffler = random.Random(seed)
    return tuple(tuple(shuffler.sample(list(arms), len(arms))) for _ in range(repetitions))
