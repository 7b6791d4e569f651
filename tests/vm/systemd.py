"""A guest whose first process is this machine's systemd, started with as little else as it can be."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from guests.boot import EXIT_MARK
from guests.qemu import Qemu
from guests.throw_away import ROOT, TURNS

PID_1 = "/lib/systemd/systemd"
TOOLS = ("taskset", "journalctl", "unshare")

MACHINE_ID = "5d0f1c3e8a7b4926b1c4e2d3f6a79801"

NEEDLESS = (
    *("systemd-udevd.service", "systemd-udev-trigger.service", "systemd-timesyncd.service"),
    *("systemd-tmpfiles-setup.service", "systemd-tmpfiles-setup-dev.service", "systemd-sysusers.service"),
    *("systemd-binfmt.service", "systemd-firstboot.service", "systemd-machine-id-commit.service"),
    *("systemd-modules-load.service", "kmod-static-nodes.service", "systemd-random-seed.service"),
    *("systemd-repart.service", "systemd-update-utmp.service", "systemd-pstore.service"),
    *("systemd-sysctl.service", "systemd-journal-flush.service", "proc-sys-fs-binfmt_misc.automount"),
    *("dev-hugepages.mount", "dev-mqueue.mount", "sys-fs-fuse-connections.mount", "sys-kernel-config.mount"),
    *("systemd-pcrphase.service", "systemd-pcrphase-sysinit.service", "systemd-remount-fs.service"),
    *("apparmor.service", "keyboard-setup.service", "timers.target", "sockets.target", "paths.target"),
)
"""What a container's or a disk's first seconds need, and this guest does not."""

FROM_MACHINE = f"""{ROOT}
busybox rm -rf /root/.dockerenv /root/usr/lib/systemd/system-generators
busybox echo {MACHINE_ID} >/root/etc/machine-id
: >/root/etc/fstab
"""
"""Makes the root of this machine's own, without what makes it a container or a disk."""


def init(root: str, needless: Sequence[str], job: str, target: str) -> str:
    """A script that makes the root as `root` does, and goes on as systemd, with these units masked, until
    `target` is up; `job` is the unit job.service."""
    return f"""{root}
busybox mkdir -p /root/run/systemd/system
for unit in {" ".join(needless)}; do busybox ln -s /dev/null /root/run/systemd/system/$unit; done
busybox cat >/root/run/systemd/system/job.service <<'end'
{job}
end
exec busybox switch_root /root {PID_1} --unit={target} --show-status=false
"""


def job(leave: str, after: str = "systemd-journald.service") -> str:
    """The unit that runs the job after that one is up, and then leaves with this command."""
    return f"""[Unit]
Wants=systemd-journald.service
After={after}
DefaultDependencies=no
[Service]
Type=oneshot
StandardInput=null
StandardOutput=file:/dev/ttyS0
StandardError=inherit
ExecStart=-/bin/bash -c '/bin/bash /run/job.sh; echo {EXIT_MARK}$$?'
ExecStart={leave}
"""


INIT = init(FROM_MACHINE, NEEDLESS, job("/bin/systemctl reboot --force --force"), "job.service")


def missing() -> tuple[str, ...]:
    """What such a guest needs and this machine lacks."""
    tools = tuple(tool for tool in TOOLS if shutil.which(tool) is None)
    return tools if Path(PID_1).exists() else ("systemd", *tools)


def machine(qemu: Qemu) -> tuple[str, ...]:
    """This QEMU with a clock that counts instructions while the guest computes (2 ns each) and is the host's
    while it sleeps: on a busy host nothing in it is late. By the host's clock, a kernel without a core for
    some seconds found its timer dead, and panicked."""
    return (*qemu.command(), "-accel", TURNS, "-icount", "shift=1", "-rtc", "clock=vm")
