"""`dasec probe`: what this host can do, for a person or as JSON."""

from __future__ import annotations

import json
import signal
from collections.abc import Sequence
from dataclasses import asdict

import click

from ..bpf.scx import why_not_tried
from ..errors import ExitStatus, Refusal
from ..hosts.host import VM_LEVEL
from ..hosts.open import probe
from ..hosts.probe.binding import Binding, binding_limits
from ..hosts.sched_ext.rcu import unseen
from ..linux.printable import printable
from ..model import Capabilities

USE = "`dasec scx` (experimental)"


def show(as_json: bool) -> None:
    """Probe and print. Refuses (status 3) if nothing at all can be controlled here."""
    # The default would end us without leaving the groups and processes on which we try things.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    found, why_not, binding = probe(), why_not_tried(VM_LEVEL) or unseen(), binding_limits()
    said = {
        **asdict(found),
        "own_scheduler": why_not is None,
        "own_scheduler_note": why_not or USE,
        "binding_limits": [one._asdict() for one in binding],
    }
    click.echo(json.dumps(said, indent=2) if as_json else render(found, why_not, binding))
    if not (found.weight or found.rescheduling_latency or found.affinity):
        raise Refusal(
            ExitStatus.HOST, "this host has no knob that we could write: `dasec run --dry-run` works"
        )


def render(found: Capabilities, why_not: str | None, binding: Sequence[Binding] = ()) -> str:
    """One line a capability, then the warnings, then the CPU limits that stop threads now. `why_not`: our own
    scheduler."""
    rows = (
        ("weight", found.weight, found.weight_note),
        ("rescheduling latency", found.rescheduling_latency, found.rescheduling_latency_note),
        ("affinity", found.affinity, found.affinity_note),
        ("cap", found.cap, found.cap_note),
        ("wake edges", found.wake_edges, found.wake_edges_note),
        ("own scheduler", why_not is None, why_not or USE),
    )
    lines = [f"backend: {found.backend}"]
    lines += [f"{name:<21} {'yes' if works else 'no':<4} {note}" for name, works, note in rows]
    lines += [f"warning: {warning}" for warning in found.warnings]
    lines += map(_binding, binding)
    return "\n".join(map(printable, lines))


def _binding(one: Binding) -> str:
    """A limit and what it cost in a second: a second of four threads at once is 4 s."""
    used = "" if one.used is None else f", while {one.used:.2f} cores were used"
    return (
        f"limit of {one.cores:g} cores on {one.group}: in {one.stopped_periods} of {one.periods} periods of"
        f" the last second it stopped threads, for {one.stopped:.2f} s together{used}"
        " (docs/bandwidth.md: `[bandwidth] caps`)"
    )
