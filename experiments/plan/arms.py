"""Arms of an experiment: policies, one constant of `critical`, one rule of `dasec` alone. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dasec.lab.kit.arms import (
    CONTROL,
    GUARDED,
    NO_LIMIT,
    NONE,
    ON_PARTIAL,
    ON_SCX,
    RIVAL,
    SCX,
    WATCHED,
    policy_of,
    rival_of,
    settings_of,
)
from dasec.policies import POLICIES
from dasec.reservations.grants import CpuClass

from .variants import VARIED, variant_of

DASEC = "dasec"
RULES = ("tsa", "rla", "rcr")
CAPS = "+caps"
"""At the end of an arm: with caps below CPU limits that bind."""

BURST = "+burst"
"""At the end of such an arm: and with a small burst."""

FOLLOW = "+follow"
"""At the end of an arm: QEMU's own threads are managed, too, where virtual machines are domains."""

STRICT, WYSIWYG = "strict", "wysiwyg"
"""CPUs of their own for those that want some, as in rKube and in WYSIWYG, and no policy."""

CRITICALLY = ":critical"
"""At the end of such an arm: `critical` within the reservations."""

RESERVING = {
    STRICT: CpuClass.WHOLE,
    WYSIWYG: CpuClass.EXCLUSIVE,
    f"{STRICT}{CRITICALLY}": CpuClass.WHOLE,
    f"{WYSIWYG}{CRITICALLY}": CpuClass.EXCLUSIVE,
}

ALONE = {f"{DASEC}:{rule}": rule for rule in RULES}
"""The arms of the paper's Figure 13."""


def known(arm: str) -> str:
    """The arm. ValueError if it is none."""
    if arm.startswith(RIVAL):
        if not rival_of(arm) or "/" in rival_of(arm)[0]:
            raise ValueError(f"{arm} names no program: give its name behind {RIVAL}, without a folder")
        return arm
    on_ours = {f"{which}{policy}" for which in (ON_SCX, ON_PARTIAL) for policy in POLICIES}
    named = {*POLICIES, *ALONE, CONTROL, WATCHED, SCX, NO_LIMIT, *on_ours}
    policy = arm.removesuffix(CAPS + BURST).removesuffix(CAPS)
    if policy.removesuffix(GUARDED) not in named and variant_of(arm) is None:
        raise ValueError(f"{arm} is unknown: known are {', '.join(sorted(named))}")
    return arm


def inner_of(arm: str) -> str:
    """The policy within an arm that reserves."""
    return VARIED if arm.endswith(CRITICALLY) else NONE


def capped(arms: Iterable[str], settings: Mapping[str, str]) -> Mapping[str, str]:
    """What the daemon is told under each arm with caps: what its policy is told anyhow, and to cap."""
    told = {}
    for arm in map(policy_of, arms):
        policy, caps, more = arm.partition(CAPS)
        if caps:
            burst = "burst = true\n" if more == BURST else ""
            told[arm] = f"{settings.get(policy, settings_of(policy))}\n[bandwidth]\ncaps = true\n{burst}"
    return told


def following(arms: Iterable[str], settings: Mapping[str, str]) -> Mapping[str, str]:
    """What the daemon is told under each arm in which QEMU's own threads follow."""
    told = {}
    for arm in arms:
        policy = arm.removesuffix(FOLLOW)
        if policy != arm:
            told[arm] = f'{settings.get(policy, settings_of(policy))}\n[libvirt]\nemulator = "follow"\n'
    return told


def dasec_settings(arms: Iterable[str], rla: str) -> Mapping[str, str]:
    """What the daemon is told under each arm that is the paper's policy or one rule of it; `rla` is RLA's
    range where the kernel has one, lines of its section."""
    told = {}
    for arm in arms:
        if arm in ALONE or (arm == DASEC and rla):
            off = {rule for rule in RULES if arm in ALONE and rule != ALONE[arm]}
            sections = (_section(rule, rla if rule == "rla" else "", rule in off) for rule in RULES)
            told[arm] = f'policy = "{DASEC}"\n{"".join(sections)}'
    return told


def _section(rule: str, told: str, off: bool) -> str:  # noqa: FBT001
    lines = told + ("enabled = false\n" if off else "")
    return f"[{rule}]\n{lines}" if lines else ""
