"""`dasec fleet hint`: the hosts of a fleet, and at most one move."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple
from urllib.parse import quote

from ..linux.printable import printable
from ..placement import AdvisedMove, FleetHost, Lately, hint
from ..placement.fleet import without_port
from .fleet_numbers import Fleet, read
from .reserve import ask_of

UNKNOWN = "Not looked at: memory, network, NUMA, licences, what must be apart, work that is not managed."


class HintWanted(NamedTuple):
    """The command's arguments."""

    url: str
    timeout_s: float
    reservations: Sequence[str]
    keep: Sequence[str]


def answer(wish: HintWanted, *, as_json: bool) -> str:
    """What to print. Refuses as `fleet_numbers.read`."""
    asks = [ask_of(text) for text in wish.reservations]
    fleet = read(wish.url, wish.timeout_s, asks, wish.keep)
    move = hint(fleet.hosts, fleet.lately)
    if as_json:
        return json.dumps(_as_json(fleet, move), indent=2)
    return "\n".join(printable(line) for line in _lines(fleet, move))


def virsh(move: AdvisedMove) -> str:
    """The line that makes the move, for a libvirt domain and a shell."""
    hosts = (quote(without_port(name), safe="[]:") for name in (move.source, move.target))
    source, target = (f"qemu+ssh://{host}/system" for host in hosts)
    words = ("virsh", "--connect", source, "migrate", "--live", "--persistent")
    return shlex.join((*words, "--domain", move.workload, "--desturi", target))


def _lines(fleet: Fleet, move: AdvisedMove | None) -> Iterator[str]:
    width = max(len("host"), *(len(host.name) for host in fleet.hosts))
    yield f"{'host':<{width}} {'cores':>6} {'vCPUs/core':>11} {'wait':>6} {'free':>7}  most blame"
    for host in sorted(fleet.hosts, key=lambda host: (-host.wait, host.name)):
        yield (
            f"{host.name:<{width}} {host.cores:>6} {host.commitment:>11.2f} {host.wait:>6.1%}"
            f" {host.free_cores:>7.1f}  {_blamed(host)}{_note(host, fleet.lately)}"
        )
    for name, what in sorted(fleet.left_out.items()):
        yield f"{name}: left out: has no {what}"
    yield ""
    if move is None:
        yield "No move: none that makes a host which waits more than 10 % better and nobody worse."
        return
    yield f"Move {move.workload} from {move.source} to {move.target}. Simulated waits:"
    for what, (before, after) in (
        (move.source, move.source_wait),
        (move.target, move.target_wait),
        (move.workload, move.workload_wait),
    ):
        yield f"  {what:<{width}} {before:>6.1%} -> {after:.1%}"
    yield f"  {virsh(move)}"
    yield UNKNOWN


def _blamed(host: FleetHost) -> str:
    worst = max(host.residents, key=lambda each: each.blame_cores, default=None)
    return f"{worst.name} {worst.blame_cores:.2f}" if worst and worst.blame_cores > 0 else "-"


def _note(host: FleetHost, lately: Lately) -> str:
    return "  (rests: something came or went)" if host.name in lately.unsettled else ""


def _as_json(fleet: Fleet, move: AdvisedMove | None) -> Mapping[str, Any]:
    return {
        "hosts": [
            {
                "name": host.name,
                "cores": host.cores,
                "commitment": host.commitment,
                "wait": host.wait,
                "free_cores": host.free_cores,
                "rests": host.name in fleet.lately.unsettled,
                "blame_cores": {each.name: each.blame_cores for each in host.residents},
            }
            for host in fleet.hosts
        ],
        "left_out": dict(fleet.left_out),
        "move": None if move is None else {**asdict(move), "virsh": virsh(move)},
    }
