"""Nothing of a domain's stop waits for the daemon that manages it.

Counted, not timed: who does not run at all cannot be waited for, and what is not there cannot be in the way.
What stops take is measured by experiments/studies/lifecycle.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dasec.errors import ExitStatus
from guests.domains import DOMAIN, MAX_VCPUS, boot_disk, groups, pid_of
from guests.libvirtd import Libvirtd
from guests.waiting import PATIENCE_S, wait_for

from ..unit.service.command import dasec

if TYPE_CHECKING:
    from libvirt import virDomain

pytestmark = [pytest.mark.host, pytest.mark.libvirt, pytest.mark.libvirtd]

NAME = f"dasec-stop-{os.getpid()}"
CONFIGURATION = f'policy = "dasec"\n[[workload]]\nname = "vm"\nlibvirt = "{NAME}"\n'
OF_DOMAIN = f"-{NAME}."
"""In the name of each of its groups."""


@pytest.fixture
def domain(libvirtd: Libvirtd, tmp_path: Path) -> Iterator[virDomain]:
    import libvirt

    connection = libvirt.open(libvirtd.uri)
    defined = connection.defineXML(DOMAIN.format(name=NAME, maximum=MAX_VCPUS, disk=boot_disk(tmp_path)))
    defined.create()
    yield defined
    with contextlib.suppress(libvirt.libvirtError):  # it was stopped
        defined.destroy()
    defined.undefine()
    connection.close()


class Daemon:
    """`dasec run` with its keeper, in the namespace of libvirtd."""

    def __init__(self, libvirtd: Libvirtd, folder: Path) -> None:
        self.state = folder / "state"
        config = folder / "dasec.toml"
        config.write_text(CONFIGURATION)
        options = ("--config", config, "--directory", self.state)
        inside = libvirtd.inside(sys.executable, "-m", "dasec", "run", *options)
        self.process = subprocess.Popen(inside, cwd="/", start_new_session=True)
        wait_for(lambda: (self.state / "status.json").exists() or self.process.poll() is not None)

    def knobs_held(self) -> int:
        """Of all vCPUs, by its status."""
        status = json.loads((self.state / "status.json").read_text())
        return sum(status["knobs_held"].values())

    def processes(self) -> set[int]:
        """It and all that it has started."""
        sessions = (pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))))
        return {pid for pid in sessions if _session(pid) == self.process.pid}

    def signal(self, number: signal.Signals) -> None:
        """To all of them."""
        for pid in self.processes():
            os.kill(pid, number)

    def stop(self) -> None:
        """In order."""
        self.process.terminate()
        assert self.process.wait(PATIENCE_S) == ExitStatus.DONE


@pytest.fixture
def daemon(libvirtd: Libvirtd, domain: virDomain, tmp_path: Path) -> Iterator[Daemon]:
    """One that holds knobs of the domain."""
    running = Daemon(libvirtd, tmp_path)
    try:
        wait_for(lambda: running.knobs_held() > 0)
        yield running
    finally:
        running.signal(signal.SIGCONT)
        running.process.kill()
        running.process.wait()


def _session(pid: int) -> int:
    with contextlib.suppress(ProcessLookupError):
        return os.getsid(pid)
    return 0


def members() -> set[int]:
    """The processes in the domain's groups, in every hierarchy."""
    files = Path("/sys/fs/cgroup").glob(f"*/machine/*{OF_DOMAIN}*/**/cgroup.procs")
    return {int(line) for file in files for line in file.read_text().split()}


def opened(pids: set[int]) -> set[str]:
    """What processes hold open of the domain's groups and of libvirt's sockets and files."""
    links = (link for pid in pids for link in Path(f"/proc/{pid}/fd").iterdir())
    files = {os.readlink(link) for link in links}
    return {file for file in files if OF_DOMAIN in file or "libvirt" in file}


def test_a_domain_is_destroyed_while_the_daemon_that_holds_its_knobs_does_not_run(
    domain: virDomain, daemon: Daemon
) -> None:
    daemon.signal(signal.SIGSTOP)
    domain.destroy()
    assert not domain.isActive()
    assert NAME not in groups("dasec-stop-")
    daemon.signal(signal.SIGCONT)
    wait_for(lambda: daemon.knobs_held() == 0)
    assert opened(daemon.processes()) == set()
    daemon.stop()
    assert dasec("verify", "--directory", daemon.state).status == ExitStatus.DONE


def test_nobody_but_qemu_sits_in_a_managed_domains_groups_and_only_weights_are_kept_open(
    libvirtd: Libvirtd, daemon: Daemon
) -> None:
    assert members() == {pid_of(libvirtd, NAME)}
    kept = opened(daemon.processes())
    assert {file.rpartition("/")[2] for file in kept} <= {"cpu.shares", "cpu.weight"}
    daemon.stop()
