"""One life of a domain, and what each part of it takes."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from dasec.errors import ExitStatus, Refusal
from dasec.lab.kit.arms import CONTROL, NONE, settings_of
from dasec.service.status import FILE_NAME, Status
from guests.domains import pid_of
from guests.waiting import wait_for

from ...places.libvirtd import own_libvirtd

if TYPE_CHECKING:
    from libvirt import virConnect, virDomain

NAME = f"dasec-life-{os.getpid()}"
VCPUS = 2
SETTLE_S = 1.5
"""For a policy to write its knobs, some twenty periods; as long without a daemon."""

DOMAIN = """
<domain type='qemu'>
  <name>{name}</name>
  <memory unit='MiB'>64</memory>
  <vcpu placement='static'>{vcpus}</vcpu>
  <os><type arch='x86_64' machine='q35'>hvm</type><boot dev='hd'/></os>
  <features><acpi/></features>
  <devices>
    <emulator>/usr/bin/qemu-system-x86_64</emulator>
    <disk type='file' device='disk'>
      <driver name='qemu' type='raw'/><source file='{disk}'/><target dev='sda' bus='sata'/>
    </disk>
    <serial type='file'><source path='{console}'/></serial>
    <controller type='usb' model='none'/><memballoon model='none'/>
  </devices>
</domain>
"""


@dataclass(frozen=True, slots=True)
class Life:
    """Seconds from each call on. `…_exit_s`: until QEMU's process had ended; the others: until libvirt was
    done, its groups removed."""

    arm: str
    repetition: int
    start_s: float
    destroy_s: float
    destroy_exit_s: float
    shutdown_s: float
    shutdown_exit_s: float
    undefine_s: float
    written: int
    """Knobs that the daemon held before the stops."""


def guest_disk(folder: Path, *, busy: bool) -> Path:
    """A disk whose boot sector is guest.S."""
    disk, source = folder / "guest.img", Path(__file__).with_name("guest.S")
    flags = ("-nostdlib", "-static", "-Wl,--build-id=none,-Ttext=0x7c00,--oformat=binary")
    subprocess.run(["gcc", *flags, *(("-DBUSY",) if busy else ()), "-o", disk, source], check=True)
    disk.chmod(0o644)
    with disk.open("ab") as file:
        file.truncate(1 << 20)
    return disk


class Site:
    """A libvirtd, and in it one domain that is defined."""

    def __init__(self, folder: Path, *, busy: bool) -> None:
        import libvirt

        libvirt.registerErrorHandler(lambda context, error: None, None)  # else it prints what is suppressed
        self._folder = folder
        self._libvirtd = own_libvirtd(folder)
        self._connection: virConnect = libvirt.open(self._libvirtd.uri)
        self._console = folder / "console"
        disk = guest_disk(folder, busy=busy)
        self._definition = DOMAIN.format(name=NAME, vcpus=VCPUS, disk=disk, console=self._console)
        self._connection.defineXML(self._definition).create()  # libvirt's first look at QEMU takes seconds
        self._libvirtd.destroy()

    def close(self) -> None:
        """Everything gone."""
        self._libvirtd.destroy()
        self._connection.close()
        self._libvirtd.close()

    def life(self, arm: str, repetition: int) -> Life:
        """Started and destroyed, started and shut down, undefined, under one arm."""
        with self._managed(arm, repetition) as state:
            domain = self._connection.lookupByName(NAME)
            start_s = self._start(domain, state)
            written = sum(_status(state)["knobs_held"].values()) if state else 0
            destroy_s, destroy_exit_s = self._stop(domain.destroy)
            self._start(domain, state)
            shutdown_s, shutdown_exit_s = self._stop(domain.shutdown)
            wait_for(lambda: not domain.isActive())
            undefine_s = _timed(domain.undefine)
            self._connection.defineXML(self._definition)
        stops = (destroy_s, destroy_exit_s, shutdown_s, shutdown_exit_s)
        return Life(arm, repetition, start_s, *stops, undefine_s, written)

    def _start(self, domain: virDomain, state: Path | None) -> float:
        """Until libvirt says that it runs; goes on when the guest is up and managed."""
        self._console.unlink(missing_ok=True)
        start_s = _timed(domain.create)
        wait_for(lambda: self._console.exists() and b"U" in self._console.read_bytes())
        if state is not None:
            wait_for(lambda: sum(one["vcpus"] for one in _status(state)["workloads"]) == VCPUS)
        time.sleep(SETTLE_S)
        return start_s

    def _stop(self, how: Callable[[], object]) -> tuple[float, float]:
        """Until libvirt's groups are gone, and until QEMU's process has ended."""
        pid = pid_of(self._libvirtd, NAME)
        groups = _groups_of(pid)
        ended: list[float] = []
        watcher = threading.Thread(target=self._watch, args=(pid, ended))
        watcher.start()
        begun_s = time.monotonic()
        how()
        wait_for(lambda: not any(map(os.path.exists, groups)), every_s=0.001)
        done_s = time.monotonic()
        watcher.join()
        return done_s - begun_s, ended[0] - begun_s

    @staticmethod
    def _watch(pid: int, ended: list[float]) -> None:
        """Sees QEMU's process end, whoever collects it then."""
        descriptor = os.pidfd_open(pid)
        select.select([descriptor], [], [])
        ended.append(time.monotonic())
        os.close(descriptor)

    @contextlib.contextmanager
    def _managed(self, arm: str, repetition: int) -> Iterator[Path | None]:
        """The daemon, for the arms that have one: where its status is."""
        if arm in (NONE, CONTROL):
            time.sleep(SETTLE_S)
            yield None
            return
        folder = self._folder / f"{repetition}-{arm}"
        folder.mkdir()
        config, log, state = folder / "dasec.toml", folder / "log", folder / "state"
        workload = f'\n[[workload]]\nname = "life"\nlibvirt = "{NAME}"\n'
        config.write_text(settings_of(arm) + workload, encoding="utf-8")
        command = (sys.executable, "-m", "dasec", "run", "--config", config, "--directory", state)
        with log.open("wb") as output:
            process = subprocess.Popen(
                self._libvirtd.inside(*command),
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd="/",
                start_new_session=True,  # as a service: autogroup would make it share with libvirtd
            )
        try:
            wait_for(lambda: (state / FILE_NAME).exists() or process.poll() is not None)
            if process.poll() is None:
                yield state
        finally:
            process.send_signal(signal.SIGTERM)
            status = process.wait()
        if status != ExitStatus.DONE:
            raise Refusal(ExitStatus.FAILED, f"lifecycle: dasec run, {arm}: {log.read_text()}")


def _timed(call: Callable[[], object]) -> float:
    begun_s = time.monotonic()
    call()
    return time.monotonic() - begun_s


def _groups_of(pid: int) -> tuple[str, ...]:
    """The directories around all of a domain's groups, in each hierarchy in which libvirt made one."""
    found = []
    for line in Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, group = line.split(":", 2)
        if NAME in group:
            place = controllers.removeprefix("name=") or "unified"
            found.append(f"/sys/fs/cgroup/{place}{group.removesuffix('/emulator')}")
    assert found, "the domain has no groups"
    return tuple(found)


def _status(state: Path) -> Status:
    return cast(Status, json.loads((state / FILE_NAME).read_text(encoding="utf-8")))
