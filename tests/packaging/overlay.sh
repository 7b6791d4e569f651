# Sourced in a mount namespace of its own: /mnt/root is an overlay over this machine's root in which the package ($1)
# is installed; /mnt/up has what differs. `inside` runs a command there.
# shellcheck shell=bash
mount -t tmpfs tmpfs /mnt
mkdir /mnt/up /mnt/work /mnt/root
mount -t overlay -o lowerdir=/,upperdir=/mnt/up,workdir=/mnt/work overlay /mnt/root
mount -t tmpfs tmpfs /mnt/root/run
for shared in proc sys dev; do mount --rbind /$shared /mnt/root/$shared; done
cp "$1" /mnt/root/run/dasec.deb
inside() { chroot /mnt/root env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }

inside dpkg --no-triggers --force-depends -i /run/dasec.deb
