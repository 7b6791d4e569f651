"""Which runs there are, and in which order."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path

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

ON_PARTIAL = f"{SCX}-partial:"
"""Before a policy: the same, but our scheduler has only the threads of workloads."""

RIVAL = "rival:"
"""Before the name of another sched_ext scheduler, a program in RIVALS, and its options: it schedules, and no
daemon runs."""

RIVALS = Path("/rivals")

GUARDED = "+guard"
"""At the end of an arm's name: the policy under the guard. Without it, the policy itself is measured."""


def rival_of(arm: str) -> tuple[str, ...]:
    """The name of its program, and the options."""
    return tuple(arm.removeprefix(RIVAL).split())


def settings_of(arm: str) -> str:
    """What the daemon is told under an arm: its policy, guarded or not."""
    guarded = "true" if arm.endswith(GUARDED) else "false"
    policy = NONE if arm == WATCHED else arm.removesuffix(GUARDED)
    return f'policy = "{policy}"\n\n[guard]\nenabled = {guarded}\n'


def on_our_scheduler(arm: str, settings: str, vm_level: int) -> str:
    """What the daemon is told under an arm that is on ours, where it is told this on the kernel's own."""
    partial = str(arm.startswith(ON_PARTIAL)).lower()
    return f'{settings}\n[host]\nbackend = "sched_ext"\nvm_level = {vm_level}\npartial = {partial}\n'


def policy_of(arm: str) -> str:
    """The daemon's policy under an arm."""
    return arm.removeprefix(ON_SCX).removeprefix(ON_PARTIAL)


def has_daemon(arm: str) -> bool:
    """Is there one beside the workloads?"""
    return arm not in (NONE, CONTROL, NO_LIMIT, SCX) and not arm.startswith(RIVAL)


def told_under(arm: str, settings: Mapping[str, str], vm_level: int) -> str:
    """What the daemon is told under an arm that has one, where it is told this under policies."""
    policy = policy_of(arm)
    told = settings.get(policy, settings_of(policy))
    return told if arm == policy else on_our_scheduler(arm, told, vm_level)


def arms_for(policies: Sequence[str]) -> tuple[str, ...]:
    """The default, its control, and each policy once."""
    return tuple(dict.fromkeys((NONE, CONTROL, *policies)))


def schedule(arms: Sequence[str], repetitions: int, seed: int | str) -> tuple[tuple[str, ...], ...]:
    """The order of the arms in each repetition, the same for the same seed: in as many repetitions as there
    are arms each comes once in each place, and in as many more with each other one before and behind it
    (docs/decisions/0125-first-is-slower.md)."""
    shuffler = random.Random(seed)
    orders: list[tuple[str, ...]] = []
    while len(orders) < repetitions:
        drawn = tuple(shuffler.sample(list(arms), len(arms)))
        for one in (drawn, drawn[::-1]):
            turned = [one[place:] + one[:place] for place in range(len(one))]
            orders += shuffler.sample(turned, len(turned))
    return tuple(orders[:repetitions])
