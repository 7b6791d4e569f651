"""From the configured workloads to what finds their threads."""

from __future__ import annotations

from ..config.config import Config, WorkloadSection
from .discovery import Discovery, Together
from .processes import Selector, StaticWorkloads


def discovery(settings: Config) -> Discovery:
    """Everything that finds the configured workloads; libvirt's part only where it is asked for."""
    static = StaticWorkloads([selector(one) for one in settings.workload if one.libvirt is None])
    domains = [one for one in settings.workload if one.libvirt is not None]
    if not domains and not settings.libvirt.metadata:
        return static
    from .libvirt.libvirt import LibvirtWorkloads, Rule

    return Together(
        static,
        LibvirtWorkloads(
            [Rule(one.name, one.libvirt or "", one.share) for one in domains],
            by_metadata=settings.libvirt.metadata,
            taken=frozenset(one.name for one in settings.workload if one.libvirt is None),
        ),
    )


def selector(workload: WorkloadSection) -> Selector:
    """A configured workload as discovery takes it."""
    return Selector(
        workload.name,
        workload.share,
        pids=workload.pids or (),
        cgroup=workload.cgroup,
        comm=workload.match.comm if workload.match else None,
    )
