"""Arms that are the policy `critical` with one constant set, as in `critical:weight_ratio=3`. Pure."""

from __future__ import annotations

from dataclasses import dataclass

VARIED = "critical"
"""The policy, and the section of the configuration."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One constant of the policy, and its value as the configuration has it."""

    constant: str
    value: str

    @property
    def arm(self) -> str:
        """Its name among the arms."""
        return f"{VARIED}:{self.constant}={self.value}"

    @property
    def settings(self) -> str:
        """What the daemon is told."""
        return f'policy = "{VARIED}"\n[{VARIED}]\n{self.constant} = {self.value}\n'


def variant_of(arm: str) -> Variant | None:
    """What is set in an arm of that name; None if it is no such arm."""
    policy, separator, setting = arm.partition(":")
    constant, equals, value = setting.partition("=")
    return Variant(constant, value) if policy == VARIED and separator and equals else None
