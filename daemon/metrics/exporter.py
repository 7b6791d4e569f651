"""The witness that counts every period and, every few seconds, renders the metrics when its work is done."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from ..config.metrics import Outlets
from ..config.subject import Subject
from ..errors import ExitStatus, Refusal
from ..guard.state import standings_in
from ..log import Announcer
from ..model import Capabilities, PolicyState, Shortfall
from ..record.entries import Entry
from .families import About, Now, render
from .tally import Totals
from .textfile import Textfile

if TYPE_CHECKING:
    from .endpoint import Endpoint


NOBODY = About("", "", "", False, 0, 0.0, 0.0)


class Exporter:
    """Counts in the loop and serves from a thread. Raises Refusal if it cannot have its address."""

    def __init__(
        self,
        outlets: Outlets,
        announcer: Announcer,
        directory: Path | None = None,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._outlets, self._announcer, self._clock = outlets, announcer, clock
        self._textfile = Textfile(outlets.textfile, directory) if outlets.textfile else None
        self._about = NOBODY
        self._shortfall: Callable[[], Shortfall] = Shortfall
        self._capabilities: Callable[[], Capabilities]
        self._tally = Totals()
        self._due_ns = self._rendered_clock_ns = 0
        self.text = b""
        self._endpoint = None if outlets.port is None else self._listen(outlets.port)

    def begin(
        self,
        subject: Subject,
        shortfall: Callable[[], Shortfall] = Shortfall,
        capabilities: Callable[[], Capabilities] | None = None,
    ) -> None:
        """Who it is that counts, what is left out, and what the host can do by now: known only when the host
        is there."""
        self._shortfall = shortfall
        self._capabilities = capabilities or (lambda: subject.capabilities)
        self._about = About(
            version("dasec"),
            subject.policy,
            subject.capabilities.backend,
            subject.dry_run,
            subject.period_ms,
            time.time(),
            subject.budget_percent / 100,
        )
        self.text = render(self._about, self._tally, self._now(0, PolicyState())).encode()

    def turn(self, policy: str, parameters: object) -> None:  # noqa: ARG002  # the interface of who turns
        """Another policy decides from the next period on."""
        self._about = replace(self._about, policy=policy)

    def write(self, entry: Entry, before: PolicyState) -> None:  # noqa: ARG002  # the interface of witnesses
        """Count one period, and render if it is time."""
        self._tally.add(entry)
        now_ns = self._clock()
        if now_ns >= self._due_ns:
            self._due_ns = now_ns + self._outlets.interval_s * 1_000_000_000
            since_ns = (
                entry.clock_ns - self._rendered_clock_ns
                if self._rendered_clock_ns
                else entry.period.length_ns
            )
            self._rendered_clock_ns = entry.clock_ns
            self.text = render(self._about, self._tally, self._now(since_ns, entry.decision.state)).encode()
            if self._textfile is not None:
                self._put(self._textfile)

    def close(self) -> None:
        """The daemon ends: no endpoint, and no file that says otherwise."""
        if self._endpoint is not None:
            self._endpoint.close()
        if self._textfile is not None:
            self._textfile.remove()

    @property
    def port(self) -> int | None:
        """Where it listens, if it does."""
        return None if self._endpoint is None else self._endpoint.port

    def _listen(self, port: int) -> Endpoint:
        from .endpoint import Endpoint

        address = self._outlets.address
        try:
            return Endpoint(address, port, lambda: self.text)
        except OSError as error:
            where = f"metrics: {address} port {port}"
            raise Refusal(
                ExitStatus.HOST, f"{where}: {error.strerror}: give another address or port in [metrics]"
            ) from error

    def _now(self, since_ns: int, state: PolicyState) -> Now:
        can = self._capabilities()
        return Now(
            cpu_s=time.process_time(),
            resident_bytes=_resident_bytes(),
            troubles=len(self._announcer.troubles),
            since_ns=since_ns,
            standings=standings_in(state),
            short=self._shortfall(),
            nested_weight=can.weight and can.nested_weight,
        )

    def _put(self, file: Textfile) -> None:
        path = file.path
        try:
            file.put(self.text)
        except OSError as error:
            self._announcer.state(
                "textfile", f"metrics {path}: {error.strerror}: the textfile is not written"
            )
        else:
            self._announcer.state("textfile", None, f"metrics {path}: written again")


def _resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
