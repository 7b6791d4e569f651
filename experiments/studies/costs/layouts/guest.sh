#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# First process of the guest: for each cell LAYOUT:RATIO:SEED on the kernel command line, services with two background
# threads each, every thread in a cgroup of its own; one RESULT line a service. All names come from the command line.
export PATH=/bin
/bin/busybox mkdir -p /proc /sys /dev /tmp
/bin/busybox mount -t proc proc /proc
/bin/busybox --install -s /bin
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmpfs /tmp
mount -t cgroup2 cgroup2 /sys/fs/cgroup
ROOT=/sys/fs/cgroup/machine
BACKGROUND=2
NEUTRAL=100
START_PATIENCE_S=3

setting() { tr ' ' '\n' </proc/cmdline | sed -n "s/^$1=//p"; }
services=$(setting services) helpers=$(setting helpers)
numbers=$(seq 0 $((services - 1)))
threads=$((1 + helpers + BACKGROUND))

ready() { sed "s/.*\"$1\": $2.*/\\1/" "/tmp/ready$3"; }

start() { # NUMBER: a service, in its group if it has one
    [ "$layout" = flat ] || echo 0 >"$ROOT/vm$1/cgroup.procs"
    exec /dasec-load service --rate "$(setting rate)" --background $BACKGROUND --background-rate "$(setting background)" \
        --helpers "$helpers" --seconds "$(setting seconds)" --warmup 0.6 --seed $((seed * 100 + $1)) \
        --iterations-per-us "$(setting speed)" --ready "/tmp/ready$1" --out "/tmp/out$1" --start-at-ns "${begin}000000000"
}

seat() { # NUMBER: each of its threads into a group of its own, with its weight
    for pair in $(ready threads '{\([^}]*\)}' "$1" | sed 's/, /\n/g; s/"//g; s/: /=/g'); do
        name=${pair%=*}
        case $name in bg*) weight=$least ;; *) weight=$((least * ratio)) ;; esac
        if [ "$layout" = flat ]; then group=$ROOT/$1-$name; else group=$ROOT/vm$1/$name; fi
        mkdir "$group"
        echo threaded >"$group/cgroup.type"
        echo "$group ${pair#*=} $weight" >>/tmp/seats
    done
}

cell() {
    layout=$1 ratio=$2 seed=$3
    begin=$(($(cut -d. -f1 /proc/uptime) + START_PATIENCE_S))
    # The weights of a workload add up to threads x neutral, as without preference.
    least=$((NEUTRAL * threads / ((1 + helpers) * ratio + BACKGROUND)))
    mkdir $ROOT
    echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
    [ "$layout" = flat ] || echo +cpu >$ROOT/cgroup.subtree_control
    for number in $numbers; do
        if [ "$layout" != flat ]; then
            mkdir "$ROOT/vm$number"
            echo $((NEUTRAL * threads)) >"$ROOT/vm$number/cpu.weight"
        fi
        (start "$number") &
    done
    for number in $numbers; do
        while [ ! -s "/tmp/ready$number" ]; do sleep 0.05; done
        [ "$layout" != flat ] || ready pid '\([0-9]*\),' "$number" >$ROOT/cgroup.procs
        seat "$number"
    done
    for number in $numbers; do
        [ "$layout" = flat ] || echo +cpu >"$ROOT/vm$number/cgroup.subtree_control"
    done
    [ "$layout" != flat ] || echo +cpu >$ROOT/cgroup.subtree_control
    while read -r group tid weight; do
        echo "$tid" >"$group/cgroup.threads"
        echo "$weight" >"$group/cpu.weight"
    done </tmp/seats
    wait
    for number in $numbers; do echo "RESULT $layout $ratio $seed $(cat "/tmp/out$number")"; done
    rm -f /tmp/ready* /tmp/out* /tmp/seats
    for group in "$ROOT"/*/*/ "$ROOT"/*/ "$ROOT"; do rmdir "$group" 2>/dev/null; done
}

for one in $(setting cells | tr , ' '); do
    # shellcheck disable=SC2046 # three words are meant
    cell $(echo "$one" | tr : ' ')
done
echo GUEST-EXIT:0
reboot -f
