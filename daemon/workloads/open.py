"""From the configured workloads to what finds their threads."""

from __future__ import annotations

from collections.abc import Sequence

from ..config.config import Config, WorkloadSection
from .discovery import Discovery, Together
from .processes import Selector, StaticWorkloads


def discovery(settings: Config, former: Discovery | None = None) -> Discovery:
    """Everything that finds the configured workloads; libvirt's part and the containers' only where asked.
    `former`: what found those of the configuration before. It is to be closed then."""
    domains = [one for one in settings.workload if one.libvirt is not None]
    containers = [one for one in settings.workload if one.container is not None]
    static = [one for one in settings.workload if one not in (*domains, *containers)]
    found: Discovery = _static([selector(one) for one in static], former)
    if containers or settings.containers.annotations:
        from .containers.containers import ContainerRule, ContainerWorkloads

        found = Together(
            found,
            ContainerWorkloads(
                [ContainerRule(one.name, one.container or "", one.share) for one in containers],
                most_share=settings.containers.most_share if settings.containers.annotations else None,
                may_reserve=settings.containers.most_cpus > 0,
                taken=frozenset(one.name for one in (*static, *domains)),
            ),
        )
    if asks_for_domains(settings):
        from .libvirt.libvirt import LibvirtWorkloads, Rule

        found = Together(
            found,
            LibvirtWorkloads(
                [Rule(one.name, one.libvirt or "", one.share) for one in domains],
                by_metadata=settings.libvirt.metadata,
                with_emulator=settings.libvirt.emulator == "follow",
                taken=frozenset(one.name for one in (*static, *containers)),
            ),
        )
    return found


def asks_for_domains(settings: Config) -> bool:
    """Whether libvirt's files are looked at."""
    return settings.libvirt.metadata or any(one.libvirt is not None for one in settings.workload)


def _static(selectors: Sequence[Selector], former: Discovery | None) -> StaticWorkloads:
    found = StaticWorkloads(selectors)
    if isinstance(known := _innermost(former), StaticWorkloads):
        found.take_over(known)
    return found


def _innermost(found: Discovery | None) -> Discovery | None:
    return _innermost(found.first) if isinstance(found, Together) else found


def selector(workload: WorkloadSection) -> Selector:
    """A configured workload as discovery takes it."""
    return Selector(
        workload.name,
        workload.share,
        pids=workload.pids or (),
        cgroup=workload.cgroup,
        comm=workload.match.comm if workload.match else None,
    )
