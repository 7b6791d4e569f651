"""`dasec run`: puts the parts together, runs the loop, takes everything down in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from .. import budget, log
from ..bandwidth.parameters import BandwidthParameters
from ..bpf.libbpf import BpfUnavailable
from ..budget import Budget
from ..config.config import Config, load
from ..config.subject import Subject
from ..errors import ExitStatus, Refusal
from ..hosts.host import Host, HostSettings, OnForeignWrite
from ..hosts.open import AUTO, BACKENDS, edges_counted, probe, touches_a_kernel
from ..linux import cpulist, cpus
from ..log import LOGGER, Announcer
from ..loop import Parts, control
from ..metrics.textfile import sweep
from ..model import Capabilities, Core, Level, PolicyState, Restored
from ..policies import POLICIES
from ..record.entries import Entry
from ..record.file import NotARecord, RecordFile
from ..safety.journal.dry_run import NoJournal
from ..safety.journal.journal import Journal
from .claim import Claim, claimed, kept
from .give_way import giving_way
from .host_alerts import Incidents
from .live_config import Regime
from .lost_knobs import LostKnobs, lacking
from .policy_alerts import Remarks
from .reservation_alerts import ReservationAlerts
from .status_file import StatusFile
from .systemd import ServiceManager
from .timer import Timer, signals_held
from .unwritten import Unwritten

if TYPE_CHECKING:
    from ..metrics.exporter import Exporter


@dataclass(frozen=True, slots=True)
class Order:
    """What one `dasec run` was told. `config` is what `read` made of `file`, and will again at a reload."""

    file: Path
    config: Config
    dry_run: bool
    periods: int | None
    record: Path | None
    directory: Path
    read: Callable[[Path], Config] = load

    @property
    def cpus(self) -> frozenset[int] | None:
        """The CPUs that may be managed; None: all."""
        text = self.config.host.cpus
        return None if text is None else frozenset(cpulist.parse(text))

    @property
    def budget_percent(self) -> float:
        """Of one core: what the daemon may take."""
        online = cpus.online()
        cores = len(online if self.cpus is None else online & self.cpus)
        return self.config.budget_percent or budget.default_percent(cores)

    @property
    def touches_the_host(self) -> bool:
        """Does it write to a kernel?"""
        return not self.dry_run and touches_a_kernel(self.config.host.backend)


@dataclass(frozen=True, slots=True)
class Stage:
    """The host, and what stands by it."""

    host: Host
    stand_by: Callable[[], bool]


def serve(order: Order) -> None:
    """Run until stopped. Raises Refusal where the host or its user must change something first."""
    log.start()
    _look_for_cpus(order)
    announcer = Announcer()
    with signals_held(), ExitStack() as stack:
        # First: who is refused because another daemon runs must not touch what that one writes.
        claims = [stack.enter_context(_claimed(order))] if order.touches_the_host else []
        manager = ServiceManager()
        stack.callback(manager.close)
        records = list(_record(order, announcer))
        for record in records:
            stack.callback(record.close)
        exporters = list(_exporter(order, announcer))
        for exporter in exporters:
            stack.callback(exporter.close)
        stage = stack.enter_context(_guarded(order, announcer, *claims) if claims else _untouched(order))
        subject = _subject(order, stage)
        statuses = list(_status(order, subject, stage, announcer))
        for status in statuses:
            stack.callback(status.remove)
        for exporter in exporters:
            exporter.begin(subject, stage.host.shortfall, lambda: stage.host.capabilities)
        counted = edges_counted(stage.host.capabilities.backend, _host_settings(order))
        regime = Regime(order.file, order.config, counted, announcer, order.read)
        stack.callback(regime.close)
        remarks = Remarks(order.config.policy, order.config.period_ms, announcer)
        incidents = Incidents(order.budget_percent, order.config.period_ms, announcer)
        lost = LostKnobs(lambda: stage.host.capabilities, announcer)
        alerts = (remarks, ReservationAlerts(announcer), incidents, lost)
        unwritten = [Unwritten(order.record)] if order.dry_run else []
        regime.turning = (remarks, *records, *statuses, *exporters)
        regime.asked = (manager, *statuses)
        parts = Parts(
            roster=regime.roster,
            host=stage.host,
            policy=regime.policy,
            reload=regime.reload,
            stand_by=stage.stand_by,
            witnesses=(HostNotices(stage.host.notices), *alerts, *unwritten, *records, *statuses, *exporters),
            announcer=announcer,
            budget=Budget(order.budget_percent, order.config.period_ms * 1_000_000),
        )
        _introduce(order, stage.host.capabilities)
        stack.enter_context(giving_way())
        pace = Timer(order.config.period_ms * 1_000_000, order.periods, manager.alive, stage.stand_by)
        restored = control(parts, pace)
        manager.stopping()
        _conclude(restored, unwritten)


def _look_for_cpus(order: Order) -> None:
    """One that is offline may come; one that this machine cannot have is a mistake."""
    possible = cpus.possible()
    strange = (order.cpus or frozenset()) - possible
    if not strange or not possible or not touches_a_kernel(order.config.host.backend):
        return
    said = f"host.cpus: no CPU {cpulist.render(strange)} can be here: there may be {cpulist.render(possible)}"
    if order.cpus == strange:
        raise Refusal(ExitStatus.USAGE, f"{order.file}: {said}: name some of these")
    LOGGER.warning("%s", said)


def _claimed(order: Order) -> AbstractContextManager[Claim]:
    return claimed(order.directory, "; `--dry-run` needs neither")


@contextmanager
def _guarded(order: Order, announcer: Announcer, claim: Claim) -> Iterator[Stage]:
    """The host with a keeper."""
    with (
        kept(order.directory, claim, order.config.host.keeper_cgroup) as keeper,
        closing(_host(order, claim.journal)) as host,  # our scheduler's puts something back only then
    ):
        yield Stage(host, lambda: claim.stands(announcer) and keeper.ensure())


@contextmanager
def _untouched(order: Order) -> Iterator[Stage]:
    """A host that is only looked at, or none at all."""
    with closing(_host(order, NoJournal())) as host:
        yield Stage(host, lambda: True)


def _host(order: Order, journal: Journal | NoJournal) -> Host:
    settings = order.config.host
    found = probe(settings.backend, duel=settings.weights == "auto")
    if settings.weights == "off":
        found = replace(found, weight=False, weight_note='`weights` in [host] is "off"')
    if settings.backend not in (AUTO, found.backend):
        lacks = BACKENDS[settings.backend].lacks()
        raise Refusal(ExitStatus.HOST, f'{order.file}: host.backend: {lacks}, or set it to "{AUTO}"')
    try:
        return BACKENDS[found.backend].open(journal, found, _host_settings(order))
    except BpfUnavailable as error:
        raise Refusal(ExitStatus.HOST, f"host.backend: {error}") from error


def _host_settings(order: Order) -> HostSettings:
    settings, limits = order.config.host, order.config.parameters().of(BandwidthParameters)
    return HostSettings(
        cpus=None if order.cpus is None else frozenset(map(Core, order.cpus)),
        own_groups=settings.own_cgroups,
        nice=settings.nice,
        on_foreign_write=OnForeignWrite(settings.on_foreign_write),
        dry_run=order.dry_run,
        bpf=settings.bpf,
        edges=POLICIES[order.config.policy].edges,
        most=settings.max_threads_per_workload,
        vm_level=settings.vm_level,
        partial=settings.partial,
        caps=limits.caps,
        burst=limits.burst,
    )


@dataclass(frozen=True, slots=True)
class HostNotices:
    """Logs what the host has to say, each thing once."""

    notices: Callable[[], Sequence[str]]

    def write(self, entry: Entry, before: PolicyState) -> None:
        """After each period."""
        for notice in self.notices():
            LOGGER.info("%s", notice)


def _record(order: Order, announcer: Announcer) -> Iterator[RecordFile]:
    """The record, if one was asked for."""
    if order.record is None:
        return
    settings = order.config
    try:
        yield RecordFile(
            order.record,
            settings.policy,
            settings.parameters(),
            announcer,
            max_bytes=settings.record.max_mib << 20,
            files=settings.record.files,
        )
    except NotARecord as error:
        raise Refusal(ExitStatus.USAGE, str(error)) from error


def _subject(order: Order, stage: Stage) -> Subject:
    settings = order.config
    return Subject(
        settings.policy,
        settings.period_ms,
        order.dry_run,
        stage.host.capabilities,
        order.budget_percent,
        order.record,
    )


def _status(order: Order, subject: Subject, stage: Stage, announcer: Announcer) -> Iterator[StatusFile]:
    """The status file of a daemon that has a directory of its own."""
    if order.touches_the_host:
        host = stage.host
        yield StatusFile(
            order.directory,
            subject,
            announcer,
            shortfall=host.shortfall,
            capabilities=lambda: host.capabilities,  # a scheduler that is put out takes its knobs with it
        )


def _exporter(order: Order, announcer: Announcer) -> Iterator[Exporter]:
    """The metrics, if they have somewhere to go."""
    directory = order.directory if order.touches_the_host else None
    if directory is not None:
        sweep(directory)
    outlets = order.config.metrics.outlets()
    if outlets is not None:
        from ..metrics.exporter import Exporter

        yield Exporter(outlets, announcer, directory)


def _introduce(order: Order, capabilities: Capabilities) -> None:
    """What runs, and what this host lacks for it."""
    dry = " (dry run: no knob is written)" if order.dry_run else ""
    guarded = ", guarded" if order.config.guard.enabled else ""
    LOGGER.info(
        "policy %s on %s%s, every %d ms%s",
        order.config.policy,
        capabilities.backend,
        dry,
        order.config.period_ms,
        guarded,
    )
    for name, why in lacking(capabilities).items():
        LOGGER.warning("this host has no knob for %s: %s", name, why)
    if POLICIES[order.config.policy].edges is not Level.NONE and not capabilities.wake_edges:
        LOGGER.warning(
            "policy %s does without wake-up sources: %s", order.config.policy, capabilities.wake_edges_note
        )
    for warning in capabilities.warnings:
        LOGGER.warning("%s", warning)


def _conclude(restored: Restored, unwritten: Sequence[Unwritten]) -> None:
    for each in unwritten:
        LOGGER.info("%s", each.line())
    for line in restored.left_alone:
        LOGGER.warning("left alone: %s", line)
    for line in restored.waiting:
        LOGGER.warning("not put back yet: %s: run `dasec restore` then", line)
    LOGGER.info("stopped: %d knobs put back", restored.put_back)
    if restored.failed:
        raise Refusal(
            ExitStatus.FAILED, *(f"not put back: {line}: run `dasec restore`" for line in restored.failed)
        )
