"""Programs of Debian that serve, and services of ours that its compilers make, by name: guests that count
have them, too."""

from __future__ import annotations

from collections.abc import Mapping

from .memcached import Memcached
from .nginx import Nginx
from .postgres import Postgres
from .redis import Redis
from .rocksdb import RocksDb
from .served import Server
from .services import OWN_SERVICES

_ALL: tuple[Server, ...] = (Memcached(), Redis(), Nginx(), Postgres(), RocksDb(), *OWN_SERVICES)

SERVERS: Mapping[str, Server] = {one.name: one for one in _ALL}
