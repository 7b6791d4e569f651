#!/usr/bin/env bash
# Runs in a guest with systemd: installs the package ($1) and takes the service through its life.
# $2 is the native load tool. Prints a line for each thing that holds; ends with 1 at the first that does not.
set -u
export PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive
step() { echo "step: $1 ($(cut -d' ' -f1 /proc/uptime) s)"; }
fail() {
    echo "failed: $1"
    systemctl status --no-pager dasec
    journalctl --no-pager -u dasec | tail -n 40
    exit 1
}
within() { # seconds, command...
    local left=$1
    shift
    until "$@"; do
        [ "$((left -= 1))" -gt 0 ] || return 1
        sleep 1
    done
}
masks() { for task in /proc/"$load"/task/*; do taskset -p "${task##*/}" | cut -d: -f2; done; }
pinned() { [ "$(masks)" != "$before" ]; }
free() { [ "$(masks)" = "$before" ]; }
restarts() { [ "$(systemctl show -P NRestarts dasec)" = "$1" ] && systemctl --quiet is-active dasec; }
configure() { printf 'policy = "static"\nperiod_ms = 500\n[[workload]]\nname = "load"\n%s\n' "$1" >/etc/dasec/dasec.toml; }

step "the package installs, and starts nothing"
dpkg --no-triggers -i "$1" >/run/dpkg.log 2>&1 || { cat /run/dpkg.log; fail "dpkg -i"; }
! systemctl --quiet is-active dasec || fail "it runs"

step "with nobody to manage it fails once, and says why"
systemctl start dasec && fail "it started"
systemctl show -P NRestarts,ExecMainStatus dasec | grep -q 2 || fail "status"

"$2" threads --threads 3 --burst-us 100 --rate 2 >/run/load.json &
load=$!
within 60 grep -q pid /run/load.json || fail "no load"
before=$(masks)

step "start"
configure "pids = [$load]"
systemctl reset-failed dasec
systemctl start dasec || fail "start"
within 60 pinned || fail "nothing is managed"
within 20 dasec status || fail "no status"

step "a wrong file is refused, and the daemon goes on"
configure "nonsense = 1"
systemctl reload dasec && fail "reload of a wrong file succeeded"
restarts 0 || fail "it did not go on"
pinned || fail "it let go"

step "reload takes a workload away"
configure "pids = [1]"
systemctl reload dasec || fail "reload"
within 20 free || fail "not put back"
configure "pids = [$load]"
systemctl reload dasec || fail "second reload"
within 20 pinned || fail "not managed again"

step "SIGKILL"
systemctl kill --signal=KILL --kill-whom=main dasec
within 60 restarts 1 || fail "no restart"
within 60 pinned || fail "not managed again"

step "watchdog"
kill -STOP "$(systemctl show -P MainPID dasec)"
within 90 restarts 2 || fail "no restart"
journalctl --no-pager -u dasec | grep -q "Watchdog timeout" || fail "no watchdog"
within 60 pinned || fail "not managed again"

step "upgrade"
old=$(systemctl show -P MainPID dasec)
dpkg --no-triggers -i "$1" >/run/dpkg.log 2>&1 || { cat /run/dpkg.log; fail "dpkg -i"; }
systemctl --quiet is-active dasec || fail "no daemon"
[ "$(systemctl show -P MainPID dasec)" != "$old" ] || fail "no new daemon"
within 60 pinned || fail "not managed again"

step "purge"
dpkg --no-triggers --purge dasec >/run/dpkg.log 2>&1 || { cat /run/dpkg.log; fail "dpkg --purge"; }
free || fail "not put back"
for left in /etc/dasec /run/dasec /var/log/dasec /usr/lib/dasec /usr/lib/systemd/system/dasec.service; do
    [ ! -e "$left" ] || fail "$left is left"
done
journalctl --no-pager -o cat -u dasec
step "done"
