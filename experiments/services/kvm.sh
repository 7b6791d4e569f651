#!/bin/sh
# QEMU, with the guest of vm-images/bare for its kernel: what QEMU is told.
home=$(dirname "$(dirname "$(readlink -f "$0")")")
exec "$home/bin/qemu-system-x86_64" -kernel "$home/bare.elf" "$@"
