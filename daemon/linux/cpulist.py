"""The kernel's text form of a set of CPUs: "0-3,8"."""

from __future__ import annotations

from collections.abc import Iterable

LARGEST_CPU = 65535
"""Beyond any kernel's NR_CPUS; keeps a typing error such as "0-9999999999" from filling the memory."""

DIGITS = 20


def parse(text: str) -> frozenset[int]:
    """The CPUs that `text` names; "" names none. ValueError says what is wrong with it."""
    cpus: set[int] = set()
    for part in text.split(",") if text.strip() else ():
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ValueError(f"{part!r} is neither a CPU number nor a range such as 0-3")
        if max(len(first), len(last)) > DIGITS:
            raise ValueError("a CPU number has too many digits")
        low, high = int(first), int(last or first)
        if low > high or high > LARGEST_CPU:
            raise ValueError(f"{part!r} is not a range of CPUs")
        cpus.update(range(low, high + 1))
    return frozenset(cpus)


def render(cpus: Iterable[int]) -> str:
    """The shortest text that `parse` turns back into `cpus`; "" for none."""
    runs: list[tuple[int, int]] = []
    for cpu in sorted(cpus):
        if runs and runs[-1][1] == cpu - 1:
            runs[-1] = (runs[-1][0], cpu)
        else:
            runs.append((cpu, cpu))
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)
