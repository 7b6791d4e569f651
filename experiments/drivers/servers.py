"""Programs of Debian that serve, and services of ours that its compilers make, by name: guests that count
have them, too."""

from __future__ import annotations

from collections.abc import Mapping

from .gluoncv import IMAGES, IN_GUESTS
from .kvm import MODULE, Kvm
from .memcached import Memcached
from .nginx import Nginx
from .postgres import Postgres
from .redis import Redis
from .rocksdb import RocksDb
from .served import Server
from .services import OWN_SERVICES
from .tailbench import TailBench
from .tailbench_apps import APPLICATIONS

TAILBENCH = tuple(TailBench(f"tailbench-{name}", name) for name in APPLICATIONS)

INSTALLED: tuple[Server, ...] = (*TAILBENCH, IMAGES)
"""By the user, so that a guest has them only where they are."""

_ALL: tuple[Server, ...] = (
    *(Memcached(), Redis(), Nginx(), Postgres(), RocksDb(), Kvm()),
    *OWN_SERVICES,
    *INSTALLED,
)

SERVERS: Mapping[str, Server] = {one.name: one for one in _ALL}

IN_COUNTED_GUESTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {IMAGES.name: {"model": IN_GUESTS}}
"""Of a driver's options the values that such guests have; one that is not here may have any."""

MODULES: Mapping[str, tuple[str, ...]] = {Kvm().name: (MODULE,)}
"""Of the kernel, that a driver needs."""
