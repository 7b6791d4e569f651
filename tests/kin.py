"""The processes that another one started: a daemon's keeper is one.

By every process's parent, since not every kernel lists children (CONFIG_PROC_CHILDREN). Processes of others
come and go meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator

from dasec.linux import procfs
from dasec.linux.errors import ThreadGone
from dasec.safety.heirs import parent


def children(pid: int) -> Iterator[int]:
    for other in procfs.process_ids():
        try:
            if parent(other) == pid:
                yield other
        except (ThreadGone, OSError):
            continue


def keeper_of(daemon: int) -> int | None:
    """The process of its keeper, if the daemon has got as far as to have one."""
    for child in children(daemon):
        try:
            if procfs.read_stat(child, child).comm == "dasec-keeper":
                return child
        except (ThreadGone, OSError):
            continue
    return None
