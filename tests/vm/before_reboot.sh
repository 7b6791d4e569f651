#!/usr/bin/env bash
# Runs in a guest that has booted a fresh Debian 13: installs and enables the service, which manages a workload that is a
# service, too, and leaves all this to the reboot. /mnt: the package, and the native load tool.
set -u
# shellcheck source-path=SCRIPTDIR
. "$(dirname -- "$0")/steps.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname -- "$0")/traces.sh"

step "a workload that is a service"
install /mnt/dasec-load /usr/local/bin/dasec-load || fail "no load tool"
cat >/etc/systemd/system/load.service <<'end'
[Service]
ExecStart=/usr/local/bin/dasec-load threads --threads 3 --burst-us 100 --rate 2 --iterations-per-us 10
[Install]
WantedBy=multi-user.target
end
systemctl enable --now --quiet load || fail "no workload"
load=$(systemctl show -P MainPID load)
who='match = { comm = "dasec-load" }'
mkdir -p "$kept"
traces >"$kept/traces"
masks >"$kept/masks"
before=$(cat "$kept/masks")

step "install"
apt-get -y install /mnt/dasec.deb >/run/apt.log 2>&1 || { cat /run/apt.log && fail "apt-get install"; }
has ActiveState inactive || fail "started without having been asked"
has UnitFileState disabled || fail "enabled without having been asked"

step "enable, with BPF"
configure critical
systemctl enable --now --quiet dasec || fail "start"
eventually grep -qs '"wake_edges":true' /run/dasec/status.json || fail "no wake-ups counted"
! log_has 'no knob\|from /proc' || fail "a knob or BPF is missing"

step "manage"
configure static
systemctl reload dasec || fail "reload"
eventually managed || fail "nothing is managed"
cp /proc/sys/kernel/random/boot_id "$kept"
step "done"
