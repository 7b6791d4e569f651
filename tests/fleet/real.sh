#!/usr/bin/env bash
# In a mount namespace of its own: the package ($1) in an overlay over this machine's root, and real.py there.
set -eu -o pipefail
# shellcheck source-path=SCRIPTDIR
. "$(dirname -- "$0")/../packaging/overlay.sh" >&2
name=$(basename -- "$1")
mv /mnt/root/run/dasec.deb "/mnt/root/run/$name"
exec "$2" "$(dirname -- "$0")/real.py" /mnt/root "/run/$name" "$3"
