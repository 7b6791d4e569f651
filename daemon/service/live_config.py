"""The configuration in force, and how another one takes its place in a running daemon: whole, or not at all.

New workloads, shares and policies are values that the loop asks for every period. What the host, the pace and
the record were made from stays until a restart: a change there is refused, and all of the file with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from pydantic_core import to_json

from ..config.config import Config, ConfigError, load
from ..config.section import Section
from ..log import LOGGER, Announcer
from ..model import Level
from ..policies import POLICIES, Parameters, policy_named
from ..policy import Policy
from ..roster import RosterEntry
from ..workloads.open import asks_for_domains, discovery

FIXED = ("period_ms", "budget_percent", "dry_run", "host", "bandwidth", "record", "metrics")
"""What the pace, the host, the record file and the endpoint were made from."""

_RESTART = "restart the daemon, or put it back"


class Turning(Protocol):
    """Names the policy in what it writes."""

    def turn(self, policy: str, parameters: Parameters) -> None:
        """Another policy decides from the next period on."""


class Asked(Protocol):
    """Passes the outcome on to who asked."""

    def reloading(self) -> None:
        """The file is about to be read again."""

    def answer(self, refused: Sequence[str]) -> None:
        """The file was read again: taken, or refused for these reasons."""


class Regime:
    """Whom the configuration finds and which policy decides, until the file says otherwise."""

    def __init__(
        self,
        file: Path,
        config: Config,
        counted: Level,
        announcer: Announcer,
        read: Callable[[Path], Config] = load,
    ) -> None:
        """`counted`: how much the host was opened to count of who wakes whom. `read`: what the start has made
        of the file, made anew."""
        self._file, self._config, self._counted, self._announcer = file, config, counted, announcer
        self._read = read
        self._workloads = discovery(config)
        self.policy = policy_named(config.policy, config.parameters())
        self.turning: tuple[Turning, ...] = ()
        self.asked: tuple[Asked, ...] = ()

    def roster(self) -> Sequence[RosterEntry]:
        """Who belongs to which workload now."""
        found = self._workloads.discover(time.monotonic_ns())
        for notice in found.notices:
            self._announcer.note(notice)
        seen = "can be seen again" if asks_for_domains(self._config) else "are not asked for any more"
        self._announcer.state("discovery", found.trouble, f"libvirt: its domains {seen}")
        return found.roster

    def reload(self) -> Policy:
        """Read the file again. The policy in force then: the same object, unless it decides otherwise."""
        for each in self.asked:
            each.reloading()
        try:
            told = self._read(self._file)
            refused = list(refusals(self._config, told, self._counted))
        except ConfigError as error:
            refused = error.lines
        if refused:
            for line in refused:
                LOGGER.error("not reloaded: %s", line)
        else:
            self._take(told)
            LOGGER.info("reloaded %s: policy %s", self._file, told.policy)
        for each in self.asked:
            each.answer(refused)
        return self.policy

    def close(self) -> None:
        """Let all descriptors go."""
        self._workloads.close()

    def _take(self, told: Config) -> None:
        if _finds(told) != _finds(self._config):
            former, self._workloads = self._workloads, discovery(told, self._workloads)
            former.close()
        self._config = told
        policy = policy_named(told.policy, told.parameters())
        if policy != self.policy:
            self.policy = policy
            for each in self.turning:
                each.turn(told.policy, told.parameters())


def _finds(config: Config) -> tuple[object, ...]:
    """All that discovery() is made from."""
    return config.workload, config.libvirt, config.containers


def refusals(now: Config, told: Config, counted: Level) -> Iterator[str]:
    """Why `told` cannot take over in a running daemon, a line each."""
    for key in FIXED:
        yield from _changes(key, getattr(now, key), getattr(told, key))
    levels = list(Level)
    wanted = POLICIES[told.policy].edges
    if levels.index(wanted) > levels.index(counted):
        yield (
            f"policy: {told.policy} wants to know who wakes whom, which this daemon does not count,"
            f" begun with another policy: {_RESTART}"
        )


def _changes(path: str, now: object, told: object) -> Iterator[str]:
    if now == told:
        return
    if isinstance(now, Section):
        for key in type(now).model_fields:
            yield from _changes(f"{path}.{key}", getattr(now, key), getattr(told, key))
    else:
        yield f"{path}: cannot change from {_shown(now)} to {_shown(told)} while the daemon runs: {_RESTART}"


def _shown(value: object) -> str:
    """As in the file, where it may be missing."""
    return "its default" if value is None else to_json(value).decode()
