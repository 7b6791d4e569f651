#!/bin/sh
# PostgreSQL with a new cluster, in a folder that may be moved: INITDB FOLDER. The program finds what it needs where Debian
# has it: two folders below the same one. Beside it lies the table that the load tool asks, empty.
set -e
initdb=$1 home=$2
bin=$(dirname "$initdb")
version=$(basename "$(dirname "$bin")")
top=${bin%/lib/postgresql/*}
for libraries in "$top"/lib/*-linux-gnu*; do
	export LD_LIBRARY_PATH="$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
done
export LC_ALL=C TZ=GMT

rm -rf "$home"
mkdir -p "$home/bin" "$home/lib/postgresql/$version/bin" "$home/lib/postgresql/$version/lib" "$home/share/postgresql/$version"
cp "$bin/postgres" "$home/lib/postgresql/$version/bin/"
cp -R "$top/share/postgresql/$version/timezonesets" "$home/share/postgresql/$version/"
cp "$(dirname "$0")/postgres.sh" "$home/bin/start"

# Neither program starts as root. Whoever they are then may still go where root works.
nobody=
if [ "$(id -u)" = 0 ]; then
	nobody="setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=+dac_override --ambient-caps=+dac_override"
fi
# Short files of the log make checkpoints frequent: the log may be two of them long.
$nobody "$initdb" --pgdata="$home/data" --username=postgres --auth=trust --encoding=UTF8 --locale=C \
	--wal-segsize=1 --no-instructions >"$home/initdb.log" 2>&1 || { cat "$home/initdb.log" >&2; exit 1; }
echo 'CREATE TABLE kept (key text PRIMARY KEY, value text NOT NULL)' |
	$nobody "$bin/postgres" --single -D "$home/data" postgres >"$home/initdb.log" 2>&1
rm "$home/initdb.log"
