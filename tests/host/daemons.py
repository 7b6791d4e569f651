"""A daemon on a process whose threads burn now and then, and what the kernel holds of these."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dasec.linux import affinity, schedattr
from guests.waiting import wait_for

# The guard would take the policy off and put it on again.
PROBED = "period_ms = 20\n[guard]\nenabled = false\n[host]\nown_cgroups = true\n"
BUSY = f'{PROBED}weights = "on"\n'
"""As all tests but the first have it: to try whether this kernel starves groups (tests/host/test_probe.py)
takes the probe up to two seconds of both cores at each start."""

PAPER = f'policy = "dasec"\n{BUSY}'
TOLD = f'policy = "oracle"\n{BUSY}[oracle]\ncritical = ["vcpu-0"]\n'
"""It writes weights and slices of all other threads, also where nobody waits."""


def run(config: Path, state: Path) -> list[str]:
    """The command line of a daemon."""
    told = ("run", "--config", str(config), "--directory", str(state))
    return [sys.executable, "-m", "dasec", *told]


@contextmanager
def daemon(tmp_path: Path, config: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A running daemon that has reported at least once; ended by the test."""
    state = tmp_path / "state"
    command = [*run(config, state), *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_for(lambda: (state / "status.json").exists() or process.poll() is not None)
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def knobs(tids: list[int]) -> list[tuple[int, tuple[int, ...], bytes]]:
    """Slice, mask and cgroup of each thread as the kernel has them."""
    return [
        (schedattr.get(tid).slice_ns, affinity.get(tid), Path(f"/proc/{tid}/cgroup").read_bytes())
        for tid in tids
    ]
