"""`dasec fleet cores`: nodes offer their whole cores, so that kube-scheduler counts who has them."""

from __future__ import annotations

import json
import shlex
import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ..errors import ExitStatus, Refusal
from ..linux.printable import printable
from ..placement.whole_cores import RESOURCE, offered, untold
from .node_status import ApiServer, Operations, api_server
from .prometheus import ask, checked
from .reserve import MOST_CPUS

CORES = '{__name__=~"dasec_cores"}'
WITHIN_A_DAY = "present_over_time(dasec_cores[1d])"
POINTER = "/status/capacity/" + RESOURCE.replace("~", "~0").replace("/", "~1")
"""RFC 6901."""

UNKNOWN = -1
"""What a node was told that could not be told, or that somebody told before us."""

ANEW_ROUNDS = 10
"""Then every node is told again: one that was deleted and came back has forgotten."""


class CoresWanted(NamedTuple):
    """The command's arguments. `kept`: cores of each node that nobody may have alone."""

    url: str
    kept: int
    timeout_s: float
    remove: bool


def commands_of(told: CoresWanted) -> str:
    """The lines that tell each node, for a shell; nothing is told. Refuses as `prometheus.ask`, and with
    status 1 if no host is known."""
    return "\n".join(
        shlex.join(
            (
                *("kubectl", "patch", "node", printable(node), "--subresource=status", "--type=json"),
                *("--patch", json.dumps(operations(None if told.remove else cores))),
            )
        )
        for node, cores in sorted((_nodes(told) if told.remove else _offered(told)).items())
    )


def operations(cores: int | None) -> Operations:
    """So many cores are offered; None: none are any more, and the resource is gone."""
    add = {"op": "add", "path": POINTER, "value": str(cores or 0)}
    return [add] if cores is not None else [add, {"op": "remove", "path": POINTER}]


@dataclass
class Teller:
    """Tells nodes what they do not know yet. `told`: what each was told last."""

    api: ApiServer
    say: Callable[[str], None]
    told: dict[str, int] = field(default_factory=dict)
    _rounds: int = 0
    _said: frozenset[str] = frozenset()

    def round(self, now: Mapping[str, int]) -> None:
        """Once. What cannot be told is said when it begins, and tried again in the next round."""
        anew = self._rounds % ANEW_ROUNDS == 0
        self._rounds += 1
        due = {**self.told, **untold(now, self.told)} if anew else untold(now, self.told)
        complaints = set()
        for node, cores in sorted(due.items()):
            failed = self.api.patch(node, operations(cores))
            if failed is None:
                self.told[node] = cores
                continue
            if failed.no_such_node and node not in now:
                self.told.pop(node, None)
            else:
                self.told[node] = UNKNOWN
                complaints.add(failed.why)
        self.complain(frozenset(complaints))

    def complain(self, complaints: frozenset[str]) -> None:
        """Each once, as long as it lasts."""
        for line in sorted(complaints - self._said):
            self.say(printable(line))
        self._said = complaints


def remove(told: CoresWanted, api: ApiServer) -> None:
    """From every node that Prometheus has known within a day. Refuses (status 1) if one still has it."""
    nodes = _nodes(told)
    failed = [one for node in sorted(nodes) if (one := api.patch(node, operations(None)))]
    complaints = [one.why for one in failed if not one.no_such_node]
    if complaints or len(failed) == len(nodes):
        raise Refusal(ExitStatus.FAILED, *map(printable, complaints or [one.why for one in failed]))


def tell(told: CoresWanted, where: str, every_s: float, say: Callable[[str], None]) -> None:
    """Until a signal, or once where the resource is to be removed. Refuses (status 2) a URL that is none."""
    checked(told.url)
    api = api_server(where)
    if told.remove:
        remove(told, api)
        return
    over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: over.set())
    teller = Teller(api, say)

    def round_and_over() -> bool:
        try:
            one_round(told, teller)
        except Refusal as refusal:
            teller.complain(frozenset(refusal.lines))
        return over.wait(every_s)

    for _ in iter(round_and_over, True):
        pass


def one_round(told: CoresWanted, teller: Teller) -> None:
    """What Prometheus knows now is told. Whose daemon was lost while nobody told nodes offers none, either.
    Refuses as `prometheus.ask`, and with status 1 if no host is known."""
    now = _offered(told)
    if not teller.told:
        teller.told = dict.fromkeys(_asked(told, WITHIN_A_DAY).keys() - now.keys(), UNKNOWN)
    teller.round(now)


def _offered(told: CoresWanted) -> dict[str, int]:
    return _known(told, _asked(told, CORES))


def _nodes(told: CoresWanted) -> dict[str, int]:
    """All those that may have been told."""
    return _known(told, {**_asked(told, WITHIN_A_DAY), **_asked(told, CORES)})


def _known(told: CoresWanted, nodes: dict[str, int]) -> dict[str, int]:
    if not nodes:
        raise Refusal(ExitStatus.FAILED, f"{told.url}: knows no host: does it scrape one with a daemon?")
    return nodes


def _asked(told: CoresWanted, query: str) -> dict[str, int]:
    """A node with more cores than there can be offers none."""
    samples = ask(told.url, query, told.timeout_s)
    there = {each.labels.get("instance", ""): int(each.value) for each in samples}
    return offered({name: cores if cores <= MOST_CPUS else 0 for name, cores in there.items()}, told.kept)
