"""Settings of `[bandwidth]`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BandwidthParameters:
    """`caps`: where a limit binds, cap those that nobody waits for, so that the others never stop. `burst`:
    where a limit saves up nothing, let it save up a jiffy for each thread."""

    caps: bool = False
    burst: bool = False
