#!/usr/bin/env bash
# Runs in a guest with systemd: takes the service of the installed package through its life. $1: the folder that
# preinstall.sh filled; $2: the native load tool. Says what it does; ends with 1 at the first thing that does not hold.
set -u
# shellcheck source-path=SCRIPTDIR
. "$(dirname -- "$0")/steps.sh"
package() {
    dpkg --admindir=/var/lib/dpkg-dasec --force-depends --no-triggers "$@" >/run/dpkg.log 2>&1 && return
    cat /run/dpkg.log
    fail "dpkg $1"
}

tar -C / -xf "$1/layer.tar"
mkdir -p /run/bin /var/lib/prometheus/node-exporter /var/lib/dpkg-dasec/updates /var/lib/dpkg-dasec/triggers
# Compiling takes a guest minutes; tests/packaging does it.
printf '#!/bin/sh\nexec tar -C / --wildcards -xf %s/layer.tar "*.pyc"\n' "$1" >/run/bin/py3compile
printf '#!/bin/sh\nfind /usr/lib/dasec -name __pycache__ -exec rm -r {} +\n' >/run/bin/py3clean
chmod +x /run/bin/*
"$2" threads --threads 3 --burst-us 100 --rate 2 --iterations-per-us 10 >/run/load.json &
load=$!
who="pids = [$load]"
systemctl daemon-reload

step "start, with BPF, metrics and a record"
eventually grep -q pid /run/load.json || fail "no load"
before=$(masks)
textfile=/var/lib/prometheus/node-exporter/dasec.prom
metrics=('[metrics]' 'port = 9753' 'interval_s = 1' "textfile = \"$textfile\"")
configure critical "${metrics[@]}"
start
eventually grep -qs '"wake_edges":true' /run/dasec/status.json || fail "no wake-ups counted"
eventually grep -qs dasec_periods_total "$textfile" || fail "no text file"
exec 3<>/dev/tcp/127.0.0.1/9753 && printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3
grep -q dasec_periods_total <&3 || fail "no metrics"
[ -s /var/log/dasec/record.jsonl ] || fail "no record"
! log_has 'no knob\|from /proc' || fail "a knob or BPF is missing"
first=$(systemctl show -P MainPID dasec)

step "reload"
configure static "${metrics[@]}"
systemctl reload dasec || fail "reload"
eventually managed || fail "nothing is managed"

step "a wrong file is refused, and the daemon goes on"
configure nonsense
! systemctl reload dasec || fail "reload of a wrong file succeeded"
has MainPID "$first" || fail "it did not go on"
managed || fail "it let go"

step "SIGKILL with a wrong file: put back, and no new start"
kill -KILL "$first"
eventually has ActiveState failed || fail "it is not down"
has ExecMainStatus 2 || fail "not for the wrong file"
log_has 'dasec-keeper: .* knobs put back' || fail "not by the keeper"
free || fail "not put back"

step "watchdog: put back, and a new start"
configure static
start
eventually managed || fail "nothing is managed"
kill -STOP "$(systemctl show -P MainPID dasec)"
eventually log_has 'Watchdog timeout' || fail "no watchdog"
eventually has NRestarts 1 || fail "no restart"
log_has '^[1-9].* knobs put back' || fail "not put back by dasec restore"
eventually managed || fail "not managed again"

step "upgrade"
old=$(systemctl show -P MainPID dasec)
package -i "$1/dasec.deb"
has ActiveState active || fail "no daemon"
! has MainPID "$old" || fail "no new daemon"
eventually managed || fail "not managed again"

step "purge"
package --purge dasec
free || fail "not put back"
for left in /etc/dasec /run/dasec /var/log/dasec /usr/lib/dasec /usr/lib/systemd/system/dasec.service "$textfile"; do
    [ ! -e "$left" ] || fail "$left is left"
done
journalctl --no-pager -o short-monotonic -u dasec
step "done"
