#!/bin/sh
# PostgreSQL on a copy of the cluster that was made with it: FOLDER, and then what postgres is told.
set -e
home=$(dirname "$(dirname "$(readlink -f "$0")")")
data=$1
shift
cp -R "$home/data" "$data"
chmod 700 "$data"
export LC_ALL=C TZ=GMT
postgres=$(echo "$home"/lib/postgresql/*/bin/postgres)
exec "$postgres" -D "$data" "$@"
