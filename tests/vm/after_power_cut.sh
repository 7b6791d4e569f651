#!/usr/bin/env bash
# Runs in the same guest as after_reboot.sh, one more boot later, before which it lost its power: did the service
# come up by itself, and does it go without a trace?
set -u
# shellcheck source-path=SCRIPTDIR
. "$(dirname -- "$0")/steps.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname -- "$0")/traces.sh"
gone() { # apt-get's verb
    apt-get -y "$1" dasec >/run/apt.log 2>&1 && return
    cat /run/apt.log
    fail "apt-get $1"
}
load=$(systemctl show -P MainPID load)
before=$(cat "$kept/masks")

step "the service came up by itself"
dmesg | grep -q "EXT4-fs (vda): recovery complete" || fail "the disk was left in order"
has ActiveState active || fail "not up"
eventually managed || fail "nothing is managed"
dasec verify || fail "verify"

step "remove"
gone remove
free || fail "not put back"
[ -e /etc/dasec/dasec.toml ] || fail "the configuration is gone before the purge"
has LoadState not-found || fail "the unit is known"

step "purge"
gone purge
changed=$(traces | diff "$kept/traces" - | head -n 20)
[ -z "$changed" ] || fail "left (>) or gone (<): $changed"
step "done"
