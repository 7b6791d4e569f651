#!/usr/bin/env bash
# Runs in a mount namespace of its own. Leaves in the folder $2 what a guest would need minutes for: the package ($1)
# uncompressed (dasec.deb), and what its installation changes on this machine (layer.tar).
set -eu
dpkg-deb -R "$1" "$2/package"
# What only `dasec top` loads is most of the files.
(cd "$2/package/usr/lib/dasec" && rm -r rich* pygments* markdown_it* mdurl*)
dpkg-deb --root-owner-group -Znone --build "$2/package" "$2/dasec.deb" >/dev/null
set -- "$2/dasec.deb" "$2"
# shellcheck source-path=SCRIPTDIR
. "$(dirname -- "$0")/../packaging/overlay.sh"
# A database that knows this package only: reading this machine's takes a guest longer than the installation.
inside sh -c 'mkdir -p /var/lib/dpkg-dasec/info && cd /var/lib/dpkg-dasec && cp ../dpkg/info/dasec.* info && dpkg -s dasec >status'
(cd /mnt/up && find . ! -type d ! -type c ! -path './var/lib/dpkg/*' -print0 | tar --null -T - -cf "$2/layer.tar")
