# Sourced by what runs in a guest with systemd: steps, waiting, and how the service and its workload do. Its user sets
# `load`, the workload's process, and `who`, the line of the configuration that names it.
# shellcheck shell=bash disable=SC2154
export PATH=/run/bin:/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive
step() { echo "step: $1 ($(cut -d' ' -f1 /proc/uptime) s)"; }
fail() {
    systemctl status --no-pager dasec
    cat /run/dasec/status.json
    journalctl --no-pager -o short-monotonic -u dasec | tail -n 40
    echo "failed: $1"
    exit 1
}
eventually() { # command...
    local tries=0
    until "$@"; do
        [ "$((tries += 1))" -lt 60 ] || return 1
        sleep 1
    done
}
masks() { for task in /proc/"$load"/task/*; do taskset -p "${task##*/}" | cut -d: -f2; done; }
managed() { [ "$(masks)" != "$before" ]; }
free() { [ "$(masks)" = "$before" ]; }
has() { [ "$(systemctl show -P "$1" dasec)" = "$2" ]; }
log_has() { journalctl --no-pager -o cat -b -u dasec | grep -q "$1"; }
configure() { # policy, lines...
    printf '%s\n' "policy = \"$1\"" 'period_ms = 500' '[[workload]]' 'name = "load"' "$who" "${@:2}" >/etc/dasec/dasec.toml
}
start() {
    systemctl reset-failed dasec 2>/dev/null
    systemctl start dasec || fail "start"
}
