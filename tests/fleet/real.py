"""The playbook acts on an overlay as on any Debian: systemd is the stand-in below, all else is real.

Runs in a mount namespace of its own, with the overlay's place. Prints what became of each step, a line each.

    real.py ROOT PACKAGE PLAYBOOK
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

SYSTEMCTL = """\
#!/bin/sh
# systemd as far as one unit of type `notify` needs it.
link=/etc/systemd/system/multi-user.target.wants/dasec.service
alive() { [ -e /run/dasec.pid ] && kill -0 "$(cat /run/dasec.pid)" 2>/dev/null; }
stop() {
    alive || return 0
    kill "$(cat /run/dasec.pid)"
    while alive; do sleep 0.1; done
    dasec restore
}
start() {
    dasec run --config /etc/dasec/dasec.toml >>/run/dasec.log 2>&1 </dev/null &
    echo $! >/run/dasec.pid
    until dasec status >/dev/null 2>&1; do
        alive || { echo "Job for dasec.service failed." >&2; exit 1; }
        sleep 0.1
    done
}
case $1 in
daemon-reload) ;;
show)
    [ -e /usr/lib/systemd/system/dasec.service ] && echo LoadState=loaded || echo LoadState=not-found
    alive && echo ActiveState=active || echo ActiveState=inactive
    ;;
is-active) alive && echo active || { echo inactive; exit 3; } ;;
is-enabled) [ -e "$link" ] && echo enabled || { echo disabled; exit 1; } ;;
enable) mkdir -p "${link%/*}" && : >"$link" ;;
--quiet | disable) rm -f "$link" ;;
start) alive || start ;;
restart) stop; start ;;
try-restart) ! alive || { stop; start; } ;;
stop) stop ;;
*) echo "unknown: $1" >&2; exit 1 ;;
esac
"""
VARIABLES = {
    "ansible_connection": "local",
    "ansible_python_interpreter": "/usr/bin/python3",
    "ansible_become": False,
    "dasec_watch_looks": 1,
    "dasec_watch_pause_s": 0,
    # Whatever else this machine does at present.
    "dasec_watch_budget_factor": 1000,
}
SCHEMAS = {
    "SCHEMA = 2\n": "SCHEMA = 3\n",
    "READABLE = (SCHEMA, 1)": "READABLE = (SCHEMA, 2, 1)",
    "_ref if schema == SCHEMA else": "_ref if schema != 1 else",
}
PATHS = "/usr/sbin:/usr/bin:/sbin:/bin"


def managing(pid: int, policy: str, period_ms: int = 500) -> str:
    """A configuration for one process."""
    return f'policy = "{policy}"\nperiod_ms = {period_ms}\n[[workload]]\nname = "sleep"\npids = [{pid}]\n'


def inside(*command: str) -> str:
    """What a command says in the overlay; nothing where there is none of that name."""
    if shutil.which(command[0], path=PATHS) is None:
        return ""
    environment = {"PATH": PATHS, "HOME": "/run/home", "LC_ALL": "C.UTF-8", "ANSIBLE_PIPELINING": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd="/")
    return done.stdout


def newer(package: Path) -> Path:
    """The same package with a higher version, and a journal of a schema that the one before cannot read."""
    tree, version = Path("/run/newer"), package.name.split("_")[1]
    inside("dpkg-deb", "--raw-extract", str(package), str(tree))
    (codec,) = tree.rglob("dasec/safety/journal/codec.py")
    code = codec.read_text(encoding="utf-8")
    for ours, theirs in SCHEMAS.items():
        assert ours in code, f"no longer in {codec.name}: {ours}"
        code = code.replace(ours, theirs)
    codec.write_text(code, encoding="utf-8")
    control = tree / "DEBIAN/control"
    text = control.read_text(encoding="utf-8")
    control.write_text(text.replace(f"Version: {version}\n", f"Version: {version}+1\n"), encoding="utf-8")
    file = package.with_name(package.name.replace(version, f"{version}+1"))
    inside("dpkg-deb", "-Znone", "--build", str(tree), str(file))
    return file


def step(name: str, playbook: Path, **given: object) -> None:
    """One run of the playbook, and the host after it."""
    variables = json.dumps({**VARIABLES, **given})
    program = str(Path(sys.executable).parent / "ansible-playbook")
    said = inside(program, "-i", "this,", "-e", variables, "-e", "dasec_hosts=all", str(playbook))
    recap = dict(item.split("=") for item in said.partition("PLAY RECAP")[2].split() if "=" in item)
    status = json.loads(inside("dasec", "status", "--json") or "{}")
    config = Path("/etc/dasec/dasec.toml")
    found = {
        "step": name,
        "changed": int(recap.get("changed", -1)),
        "failed": int(recap.get("failed", -1)),
        "said": [line for line in said.splitlines() if line.startswith("fatal:")],
        "policy": status.get("policy"),
        "held": status.get("knobs_held"),
        "verify": inside("dasec", "verify").strip(),
        "config": config.read_text(encoding="utf-8") if config.exists() else None,
        "package": inside("dpkg-query", "--show", "--showformat=${db:Status-Status}", "dasec"),
        "version": inside("dpkg-query", "--show", "--showformat=${Version}", "dasec"),
        "enabled": inside("systemctl", "is-enabled", "dasec").strip(),
        "left": [path for path in ("/var/lib/dasec-before", "/run/dasec/journal") if Path(path).exists()],
    }
    print(json.dumps(found), flush=True)


def main() -> None:
    """The life of one host."""
    root, package, playbook = map(Path, sys.argv[1:])
    for folder in ("run/systemd/system", "run/home"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    os.chroot(root)
    os.chdir("/")
    systemctl = Path("/usr/bin/systemctl")
    systemctl.unlink()
    systemctl.write_text(SYSTEMCTL, encoding="utf-8")
    systemctl.chmod(0o755)
    with subprocess.Popen(["sleep", "1000"]) as workload:
        try:
            step("foreign", playbook, dasec_state="absent")
            inside("dpkg", "--no-triggers", "--purge", "dasec")
            static, none = managing(workload.pid, "static"), managing(workload.pid, "none")
            given = {"dasec_package": str(package), "dasec_dpkg_options": ["--force-depends"]}
            step("present", playbook, **given, dasec_config=static)
            step("nonsense", playbook, **given, dasec_config="policy = 7\n")
            given["dasec_package"] = str(newer(package))
            other = managing(workload.pid, "static", period_ms=400)
            step("costly", playbook, **given, dasec_config=other, dasec_watch_budget_factor=0.0001)
            step("newer", playbook, **given, dasec_config=none)
            step("absent", playbook, dasec_state="absent")
        finally:
            inside("systemctl", "stop", "dasec")
            workload.kill()


if __name__ == "__main__":
    main()
