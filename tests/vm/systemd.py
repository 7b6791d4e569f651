"""A guest whose first process is this machine's systemd, started with as little else as it can be."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.vm.boot import EXIT_MARK
from tests.vm.guest import ROOT, TURNS
from tests.vm.qemu import Qemu

PID_1 = "/lib/systemd/systemd"
TOOLS = ("taskset", "journalctl", "unshare")

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

JOB = f"""[Unit]
Wants=systemd-journald.service
After=systemd-journald.service
DefaultDependencies=no
[Service]
Type=oneshot
StandardInput=null
StandardOutput=file:/dev/ttyS0
StandardError=inherit
ExecStart=-/bin/bash -c '/bin/bash /run/job.sh; echo {EXIT_MARK}$$?'
ExecStart=/bin/systemctl reboot --force --force
"""

INIT = f"""{ROOT}
busybox mkdir -p /root/run/systemd/system
for unit in {" ".join(NEEDLESS)}; do busybox ln -s /dev/null /root/run/systemd/system/$unit; done
busybox rm -rf /root/.dockerenv /root/usr/lib/systemd/system-generators
busybox echo 5d0f1c3e8a7b4926b1c4e2d3f6a79801 >/root/etc/machine-id
busybox cat >/root/run/systemd/system/job.service <<'end'
{JOB}
end
: >/root/etc/fstab
exec busybox switch_root /root {PID_1} --unit=job.service --show-status=false
"""


def missing() -> tuple[str, ...]:
    """What such a guest needs and this machine lacks."""
    tools = tuple(tool for tool in TOOLS if shutil.which(tool) is None)
    return tools if Path(PID_1).exists() else ("systemd", *tools)


def machine(qemu: Qemu) -> tuple[str, ...]:
    """This QEMU with a clock that counts instructions while the guest computes (2 ns each) and is the host's
    while it sleeps: on a busy host nothing in it is late. By the host's clock, a kernel without a core for
    some seconds found its timer dead, and panicked."""
    return (*qemu.command(), "-accel", TURNS, "-icount", "shift=1", "-rtc", "clock=vm")
