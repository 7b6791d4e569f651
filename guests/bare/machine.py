"""QEMU around the guest: under KVM where that serves it, else under TCG."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dasec.linux import procfs
from guests.bare.built import bare_guest
from guests.bare.words import (
    Accelerator,
    Machine,
    forwarding,
    free_ports,
    here,
    online,
    qemu_words,
    said_up,
)
from guests.boot import WITH_US
from guests.built import HostCannotError
from guests.qemu import NAME, why_not_installed
from guests.waiting import wait_for

VCPU = re.compile(r"CPU (\d+)/")
TRIAL_VCPUS, TRIAL_PATIENCE_S = 2, 60.0
"""It takes half a second, or for ever."""


class NotUpError(Exception):
    """A guest that did not come up whole: what QEMU said, or how far it came."""


@dataclass(frozen=True, slots=True)
class Bare:
    """A guest that is up."""

    pid: int
    address: tuple[str, int]
    """Where it answers on this host."""

    memcached: tuple[str, int]
    """And where it is a memcached."""

    online: int
    """vCPUs that came up, by its own count."""

    def vcpu_threads(self) -> dict[int, int]:
        """The host's threads, by number of the vCPU."""
        named = (
            (VCPU.match(procfs.read_stat(self.pid, tid).comm), tid) for tid in procfs.thread_ids(self.pid)
        )
        return {int(match.group(1)): tid for match, tid in named if match}


@contextmanager
def running(
    accelerator: Accelerator,
    vcpus: int,
    options: str = "",
    patience_s: float = 250.0,
    machine: Machine = Machine.MICROVM,
    wire: str | None = None,
) -> Iterator[Bare]:
    """A guest with these options (vm-images/bare/README.md) until the end of the block; `wire` is QEMU's
    network `net` instead of one that forwards the guest's ports. HostCannotError where there is no QEMU, or
    the guest cannot be built; NotUpError where it does not come up."""
    if why := why_not_installed():
        raise HostCannotError(why)
    with tempfile.TemporaryDirectory(prefix="dasec-bare-") as folder:
        console, said, ports = Path(folder) / "console", Path(folder) / "said", free_ports()
        network = wire or forwarding(ports)
        words = qemu_words(accelerator, vcpus, options, console, network, machine)
        command = [*WITH_US, NAME, "-kernel", str(bare_guest()), *words]
        with said.open("wb") as sink:
            qemu = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink)
        try:
            await_up(console, vcpus, lambda: qemu.poll() is not None, patience_s)
            if qemu.poll() is not None:
                raise NotUpError(said.read_text(errors="replace").strip() or "QEMU said nothing")
            yield Bare(qemu.pid, *here(ports), online(console))
        finally:
            qemu.kill()
            qemu.wait()


def await_up(console: Path, vcpus: int, ended: Callable[[], bool], patience_s: float) -> None:
    """Until the guest has said that it is there, or QEMU has ended. NotUpError if neither comes in time, or
    a vCPU is missing."""
    try:
        wait_for(lambda: said_up(console) or ended(), patience_s)
    except AssertionError:
        raise NotUpError(f"no guest within {patience_s:.0f} s") from None
    if said_up(console) and (up := online(console)) != vcpus:
        raise NotUpError(f"{up} of {vcpus} vCPUs have come up")


@cache
def why_not_kvm() -> str | None:
    """Found by trying: None if KVM serves this guest here, else why TCG has to, in one line."""
    try:
        with running(Accelerator.KVM, TRIAL_VCPUS, patience_s=TRIAL_PATIENCE_S):
            return None
    except NotUpError as why:
        return f"KVM does not serve here, TCG does: {str(why).splitlines()[-1]}"


def best_accelerator() -> Accelerator:
    """KVM where it serves."""
    return Accelerator.KVM if why_not_kvm() is None else Accelerator.TCG
