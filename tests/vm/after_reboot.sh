#!/usr/bin/env bash
# Runs in the same guest as before_reboot.sh, one boot later, when everything that is enabled is up: did the service come
# up by itself, and what does it make of a journal that is older than this boot?
set -u
# shellcheck source-path=SCRIPTDIR
. "$(dirname -- "$0")/steps.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname -- "$0")/traces.sh"
mask() { taskset -p "$bystander" | cut -d: -f2; }
left_by() { # boot id: a journal that names a mask which the bystander has
    systemctl stop dasec || fail "stop"
    PYTHONPATH=/usr/lib/dasec python3 -B /mnt/left_journal.py "$1" "$bystander" 0 0,1 || fail "no journal"
    start
}
load=$(systemctl show -P MainPID load)
first=$(cat "$kept/boot_id")
before=$(cat "$kept/masks")

step "another boot, in which the service came up by itself"
! [ "$first" = "$(cat /proc/sys/kernel/random/boot_id)" ] || fail "the same boot"
journalctl --no-pager -o cat -b -1 -u dasec | grep -q 'stopped: .* knobs put back' || fail "no orderly end of the first boot"
has ActiveState active || fail "not up"
has NRestarts 0 || fail "not at once"
! log_has 'journal\|put back' || fail "it found a journal"
eventually managed || fail "nothing is managed"
dasec verify || fail "verify"

step "a journal of the boot before is void"
systemctl stop dasec || fail "stop"
free || fail "not put back"
sleep infinity &
bystander=$!
taskset -p 1 "$bystander" >/dev/null
own=$(mask)
left_by "$first"
[ "$(journalctl --no-pager -o cat -b -u dasec | grep -c 'journal of another boot')" = 1 ] || fail "not one line"
[ "$(mask)" = "$own" ] || fail "it wrote to a thread that the journal names"
eventually managed || fail "nothing is managed"
dasec verify || fail "verify"

step "one of this boot is not"
left_by "$(cat /proc/sys/kernel/random/boot_id)"
log_has 'put back 1 knobs that an earlier daemon had left' || fail "the journal was not read"
[ "$(mask)" != "$own" ] || fail "not put back"
eventually managed || fail "nothing is managed"
step "done"
