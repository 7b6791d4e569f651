# Sourced beside steps.sh: everything on the disk, a line each, to be compared before an installation and after a purge.
# shellcheck shell=bash
kept=/var/tmp/reboot # what the first boot tells the second

# Without what every package changes (logs and caches of dpkg, apt and systemd), but for names with ours in them.
traces() {
    {
        find / -xdev \( -path /var/log/journal -o -path /var/lib/systemd -o -path /var/log/apt -o -path /var/cache/apt \
            -o -path /var/lib/apt -o -path "$kept" -o -path '/var/lib/dpkg/status*' -o -path /var/log/dpkg.log \) -prune \
            -o -type d -printf '%p %M %u:%g\n' -o -printf '%p %M %u:%g %s %l\n'
        find / -xdev -path "$kept" -prune -o -iname '*dasec*' -printf 'ours: %p\n'
        find /etc -xdev -type f -exec md5sum {} +
        find /run /sys/fs/cgroup -name '*dasec*'
        dpkg-query -W
        systemctl list-unit-files --no-legend --no-pager
    } | sort
}
