"""Writes the journal that a killed daemon would have left, with the mask of one process in it. Runs in a
guest, with the library of the installed package.

    left_journal.py BOOT-ID PID OURS PRIOR       masks as CPUs: 0,1
"""

from __future__ import annotations

import sys

from dasec.knobs.knob import KnobRef
from dasec.knobs.masks import AFFINITY
from dasec.linux import procfs
from dasec.linux.namespaces import own_namespaces
from dasec.model import VcpuId
from dasec.safety.journal import codec
from dasec.safety.journal.journal import DIRECTORY, NAME


def journal(boot_id: str, pid: int, ours: tuple[int, ...], prior: tuple[int, ...]) -> bytes:
    """Its bytes."""
    stat = procfs.read_stat(pid, pid)
    ref = KnobRef(VcpuId(pid, pid, stat.start_ticks), AFFINITY, "")
    entry = codec.encode(codec.Held(ref, prior, (ours,), stat.start_ticks))
    header = codec.encode_header(codec.Origin(boot_id, own_namespaces()))
    return header + codec.frames([entry], 1, codec.line_seed(boot_id)).encode()


def cpus(text: str) -> tuple[int, ...]:
    """The CPUs of a mask."""
    return tuple(map(int, text.split(",")))


if __name__ == "__main__":
    boot_id, pid, ours, prior = sys.argv[1:]
    (DIRECTORY / NAME).write_bytes(journal(boot_id, int(pid), cpus(ours), cpus(prior)))
