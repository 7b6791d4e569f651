#!/usr/bin/env bash
# Runs in a mount namespace of its own. Leaves in the folder $2 what an installation of the package ($1) changes on
# this machine (layer.tar), and the package uncompressed (dasec.deb): in a guest all of that would take minutes.
set -eu
# shellcheck source-path=SCRIPTDIR
. "$(dirname -- "$0")/../packaging/overlay.sh"
# A database that knows this package only: reading this machine's takes a guest longer than the installation.
inside sh -c 'mkdir -p /var/lib/dpkg-dasec/info && cd /var/lib/dpkg-dasec && cp ../dpkg/info/dasec.* info && dpkg -s dasec >status'
(cd /mnt/up && find . ! -type d ! -type c ! -path './var/lib/dpkg/*' -print0 | tar --null -T - -cf "$2/layer.tar")
dpkg-deb -R "$1" /mnt/package
dpkg-deb --root-owner-group -Znone --build /mnt/package "$2/dasec.deb" >/dev/null
