"""The options of an order: those that a driver knows, as numbers where they are numbers."""

from __future__ import annotations

import shutil
from collections.abc import Mapping

from dasec.errors import ExitStatus, Refusal
from dasec.lab.kit.driver import WorkOrder


def options_of(order: WorkOrder, known: Mapping[str, str]) -> dict[str, str]:
    """The driver's defaults with what the order says. Refusal on an option that the driver does not know."""
    for name in order.options:
        if name not in known:
            allowed = ", ".join(sorted(known)) or "none"
            raise refusal(order, name, f"is no option of this application: it has {allowed}")
    return {**known, **order.options}


def whole(order: WorkOrder, name: str, text: str, least: int = 1) -> int:
    """A whole number. Refusal if it is none."""
    if not text.isascii() or not text.isdigit() or int(text) < least:
        raise refusal(order, name, f"must be a whole number from {least} on, got '{text}'")
    return int(text)


def one_of(order: WorkOrder, name: str, text: str, allowed: tuple[str, ...]) -> str:
    """One of these words. Refusal if it is none."""
    if text not in allowed:
        raise refusal(order, name, f"must be one of {', '.join(allowed)}, got '{text}'")
    return text


def refusal(order: WorkOrder, name: str, why: str) -> Refusal:
    """The order cannot be understood."""
    return Refusal(ExitStatus.USAGE, f"{order.name}: {name}: {why}")


def absent(program: str, package: str | None = None) -> str | None:
    """Why a program cannot be used; None: it is there."""
    if shutil.which(program):
        return None
    how = f"apt-get install {package}" if package else "install it and put it into PATH"
    return f"{program}: not found: {how}"
