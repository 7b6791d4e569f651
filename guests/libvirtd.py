"""A libvirtd of a test's own, in a mount namespace: configuration, state and sockets vanish with it.

Everything of it is reached through /proc/PID/root. It ends when whoever started it does, also if that
was killed, with its domains and their groups. It runs QEMU as root, because otherwise it probes QEMU anew at
every start where /dev/kvm belongs to root alone, and a start takes a minute.
"""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from guests.built import HostCannotError
from guests.waiting import wait_for

if TYPE_CHECKING:
    from libvirt import virDomain

SCRIPT = r"""
set -e
for place in /etc/libvirt /run/libvirt /var/lib/libvirt /var/cache/libvirt /var/log/libvirt; do
    mkdir -p $place
    mount -t tmpfs tmpfs $place
done
# Debian makes this user with a package of its own; libvirtd looks for it whatever qemu.conf says.
cp /etc/passwd /etc/group /etc/libvirt
grep -q ^libvirt-qemu: /etc/passwd || echo 'libvirt-qemu:x:64055:64055::/:/bin/false' >>/etc/libvirt/passwd
grep -q ^libvirt-qemu: /etc/group || echo 'libvirt-qemu:x:64055:' >>/etc/libvirt/group
mount --bind /etc/libvirt/passwd /etc/passwd
mount --bind /etc/libvirt/group /etc/group
# Where cpu is on cgroup v1 beside v2, a libvirtd that was restarted looks for its domains in the wrong one.
! mountpoint -q /sys/fs/cgroup/unified || umount /sys/fs/cgroup/unified
printf 'user = "root"\ngroup = "root"\nremember_owner = 0\n' >/etc/libvirt/qemu.conf
printf 'auth_unix_ro = "none"\nauth_unix_rw = "none"\n' >/etc/libvirt/libvirtd.conf
# A libvirtd takes no domain from one with the same identity, by default that of the machine.
printf 'host_uuid = "%s"\n' "$(cat /proc/sys/kernel/random/uuid)" >>/etc/libvirt/libvirtd.conf
end() {
    pid=$(cat "$1" 2>/dev/null) || return 0
    case $(cat "/proc/$pid/comm" 2>/dev/null) in $2) kill -KILL "$pid" ;; esac
}
touch /run/libvirt/ready
read -r _ || true # until whoever started us closes this, or is gone
for daemon in libvirtd virtlogd; do end /run/libvirt/$daemon.pid $daemon; done
for file in /run/libvirt/qemu/*.pid; do end "$file" 'qemu-system*'; done
for file in /run/libvirt/qemu/*.pid; do
    groups="*/machine/qemu-*-$(basename "$file" .pid).libvirt-qemu*"
    for try in $(seq 50); do # until QEMU has left them
        ! find /sys/fs/cgroup -depth -type d -path "$groups" -exec rmdir {} + 2>/dev/null || break
        sleep 0.1
    done
done
"""


_MANAGED_SAVE = 1
"""VIR_DOMAIN_UNDEFINE_MANAGED_SAVE in libvirt-domain.h."""


def missing_tools() -> list[str]:
    """Programs, and libvirt's Python binding, that are not installed here."""
    needed = ("libvirtd", "virtlogd", "qemu-system-x86_64", "unshare", "nsenter")
    bindings = [] if importlib.util.find_spec("libvirt") else ["libvirt-python"]
    return [*(name for name in needed if shutil.which(name) is None), *bindings]


class Libvirtd:
    """The namespace lives as long as the object; libvirtd in it may be stopped and started. HostCannotError
    where there can be no such namespace, or a program of libvirt's ends as it starts."""

    def __init__(self, log: Path) -> None:
        self._said = log
        self._log = log.open("wb")
        self._groups = _machine_groups()
        self._holder = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "bash", "-c", SCRIPT],
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            process_group=0,
        )
        self.root = Path(f"/proc/{self._holder.pid}/root")
        self.directory = self.root / "run/libvirt/qemu"
        self.uri = f"qemu:///system?socket={self.root}/run/libvirt/libvirt-sock"
        self._wait_for((self.root / "run/libvirt/ready").is_file, self._holder)
        self._daemons = {"virtlogd": self._spawn("virtlogd")}
        self.start()

    def start(self) -> None:
        """Until it answers."""
        self._daemons["libvirtd"] = self._spawn("libvirtd")
        self._wait_for(lambda: self._answers() and self.directory.is_dir(), self._daemons["libvirtd"])

    def _wait_for(self, condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
        wait_for(lambda: process.poll() is not None or condition())
        if process.returncode is not None:
            said = self._said.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            raise HostCannotError(f"a libvirtd of our own: {said[-1] if said else 'it says nothing'}")

    def kill(self) -> None:
        """As if it had crashed; its domains live on."""
        self._end("libvirtd", signal.SIGKILL)
        with contextlib.suppress(FileNotFoundError):
            (self.root / "run/libvirt/libvirt-sock").unlink()

    def destroy(self) -> None:
        """End all domains, by a connection of its own: others may have broken."""
        self._each(lambda domain: domain.destroy())

    def clear(self) -> None:
        """No domain is left, running or defined, by a libvirtd that answers: a test that failed may have left
        one that is stopped, or none."""
        if "libvirtd" in self._daemons:
            self._daemons["libvirtd"].send_signal(signal.SIGCONT)
        if not self._answers():
            self.kill()
            self.start()
        self.destroy()
        self._each(lambda domain: domain.undefineFlags(_MANAGED_SAVE))

    def _each(self, end: Callable[[virDomain], object]) -> None:
        import libvirt

        connection = libvirt.open(self.uri)
        for domain in connection.listAllDomains():
            with contextlib.suppress(libvirt.libvirtError):  # it does not run, or has just gone
                end(domain)
        connection.close()

    def running(self) -> int:
        """How many domains libvirt says run."""
        import libvirt

        connection = libvirt.open(self.uri)
        number: int = connection.numOfDomains()
        connection.close()
        return number

    def stop_answering(self) -> None:
        """It lives, and says nothing any more."""
        self._daemons["libvirtd"].send_signal(signal.SIGSTOP)

    def close(self) -> None:
        """End all of it."""
        for name in tuple(self._daemons):
            self._end(name, signal.SIGKILL)
        self._holder.communicate()
        self._log.close()
        for top in _machine_groups() - self._groups:
            for group in (*sorted(top.glob("**/"), reverse=True), top):
                with contextlib.suppress(OSError):  # gone, or somebody else's domain is in it by now
                    group.rmdir()

    def inside(self, *command: str | Path) -> list[str | Path]:
        """The command that sees what libvirtd sees."""
        return ["nsenter", f"--mount=/proc/{self._holder.pid}/ns/mnt", *command]

    def _answers(self) -> bool:
        """Its socket is there a moment before somebody listens at it."""
        with socket.socket(socket.AF_UNIX) as asked:
            return asked.connect_ex(str(self.root / "run/libvirt/libvirt-sock")) == 0

    def _spawn(self, program: str) -> subprocess.Popen[bytes]:
        """With a pid file of its own: by default all libvirtds of a machine have the same one. And with a
        process group of its own: who is interrupted at a terminal still needs it, to end its domains."""
        command = self.inside(program, "--pid-file", f"/run/libvirt/{program}.pid")
        return subprocess.Popen(command, stdout=self._log, stderr=subprocess.STDOUT, process_group=0)

    def _end(self, name: str, how: signal.Signals) -> None:
        daemon = self._daemons.pop(name, None)
        if daemon is not None:
            daemon.send_signal(how)
            daemon.wait()


def _machine_groups() -> set[Path]:
    """The groups that libvirt makes around all domains, and leaves behind."""
    top = Path("/sys/fs/cgroup")
    return {*top.glob("machine"), *top.glob("*/machine")}
