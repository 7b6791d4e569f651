"""A guest whose first process is this machine's systemd, started with as little else as it can be."""

from __future__ import annotations

from tests.vm.boot import EXIT_MARK
from tests.vm.guest import ROOT

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
"""What a container's or a disk's first seconds need, and this guest does not; in QEMU each takes a second."""

JOB = f"""[Unit]
Wants=systemd-journald.service
After=systemd-journald.service
DefaultDependencies=no
[Service]
Type=oneshot
StandardInput=null
StandardOutput=file:/dev/ttyS0
StandardError=inherit
ExecStart=-/bin/bash -c '/bin/bash /run/job.sh; echo {EXIT_MARK}$?'
ExecStart=/bin/systemctl reboot --force --force
"""

INIT = f"""{ROOT}
busybox mkdir -p /root/run/systemd/system /root/run/scratch
for unit in {" ".join(NEEDLESS)}; do busybox ln -s /dev/null /root/run/systemd/system/$unit; done
busybox cat >/root/run/systemd/system/job.service <<'end'
{JOB}
end
busybox cp /job.sh /root/run/
: >/root/etc/fstab
exec busybox switch_root /root /lib/systemd/systemd --unit=job.service --show-status=false
"""
