"""`dasec probe`: what this host can do, for a person or as JSON."""

from __future__ import annotations

import json
import signal
from dataclasses import asdict

import click

from ..bpf.scx import why_not as why_not_scx
from ..errors import ExitStatus, Refusal
from ..hosts.open import probe
from ..linux.printable import printable
from ..model import Capabilities

USE = "`dasec scx` (experimental)"


def show(as_json: bool) -> None:
    """Probe and print. Refuses (status 3) if nothing at all can be controlled here."""
    # The default would end us without leaving the groups and processes on which we try things.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    found, why_not = probe(), why_not_scx()
    said = {**asdict(found), "own_scheduler": why_not is None, "own_scheduler_note": why_not or USE}
    click.echo(json.dumps(said, indent=2) if as_json else render(found, why_not))
    if not (found.weight or found.rescheduling_latency or found.affinity):
        raise Refusal(
            ExitStatus.HOST, "this host has no knob that we could write: `dasec run --dry-run` works"
        )


def render(found: Capabilities, why_not: str | None) -> str:
    """One line a capability, then the warnings; and why not our own scheduler."""
    rows = (
        ("weight", found.weight, found.weight_note),
        ("rescheduling latency", found.rescheduling_latency, found.rescheduling_latency_note),
        ("affinity", found.affinity, found.affinity_note),
        ("wake edges", found.wake_edges, found.wake_edges_note),
        ("own scheduler", why_not is None, why_not or USE),
    )
    lines = [f"backend: {found.backend}"]
    lines += [f"{name:<21} {'yes' if works else 'no':<4} {note}" for name, works, note in rows]
    lines += [f"warning: {warning}" for warning in found.warnings]
    return "\n".join(map(printable, lines))
