#!/usr/bin/env bash
# Runs in a mount namespace of its own: installs the package ($1) into an overlay over this machine's root,
# tries it there ($2: the load tool), purges it, and prints every file that is left.
set -eu -o pipefail
# shellcheck source-path=SCRIPTDIR
. "$(dirname -- "$0")/overlay.sh"

inside dasec --version
echo "refused: $(inside dasec run --config /etc/dasec/dasec.toml 2>&1 | head -n 1)"
cat >/mnt/root/etc/dasec/dasec.toml <<'end'
period_ms = 20
[host]
backend = "fake"
[[workload]]
name = "a"
pids = [1]
end
inside dasec run --periods 5 --config /etc/dasec/dasec.toml
cp "$2" /mnt/root/run/dasec-load
inside DASEC_LOAD=/run/dasec-load dasec bench overhead --vcpus 2 --periods 10 | sed 's/^/bench: /'
# shellcheck disable=SC2016 # for the shell inside
inside bash -c '. /usr/share/bash-completion/completions/dasec
COMP_WORDS=(dasec rel) COMP_CWORD=1 && _dasec_completion dasec && echo "completed: ${COMPREPLY[*]}"'
gzip -dc /mnt/root/usr/share/man/man1/dasec-run.1.gz | grep 'dry.*run' | sed 's/^/manual: /'
! inside systemctl --quiet enable dasec 2>/dev/null || echo "enabled: yes"
inside dpkg --no-triggers --purge dasec
(cd /mnt/up && find . ! -type d ! -path './var/lib/dpkg/*' ! -path './var/log/dpkg.log' | sed 's/^/left: /')
for folder in etc/dasec usr/lib/dasec var/log/dasec run/dasec; do
    [ ! -e "/mnt/root/$folder" ] || echo "left: $folder"
done
