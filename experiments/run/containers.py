"""Workloads that are containers of Docker's: it makes their groups, and the daemon finds them by name."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dasec.lab.kit.bench import RunPlan
from dasec.lab.kit.controller import Managed
from dasec.lab.kit.home import TenantHome
from dasec.lab.kit.layout import BESIDE
from dasec.lab.kit.process import entered
from dasec.lab.kit.tree import CLIENT, Tree

from ..places.docker import InDocker, container


@dataclass(slots=True)
class ContainerHome(TenantHome):
    """A container, in whose one group all threads are and stay."""

    place: InDocker = field(kw_only=True)

    def managed(self, pids: tuple[int, ...]) -> Managed:
        return Managed(self.tenant.name, self.tenant.share, pids, container=f"docker:{self.place.container}")


@contextlib.contextmanager
def homes_in_docker(
    writable: Path,
    plan: RunPlan,
    tree: Tree,
    arm: str,  # noqa: ARG001  # the interface of homes
) -> Iterator[tuple[ContainerHome, ...]]:
    """Containers that are new; of ours only what is beside them has groups."""
    tree.make(BESIDE)
    asks = entered(tree, CLIENT, ())
    with contextlib.ExitStack() as stack:
        yield tuple(
            ContainerHome(
                tree,
                plan.layout,
                one,
                place=stack.enter_context(container(f"dasec-{one.name}", writable, asks)),
            )
            for one in plan.scenario.tenants
        )
