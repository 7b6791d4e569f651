"""Hosts for Ansible that are directories.

dpkg is real and works below them, systemd is a state machine, and the package is a small one whose `dasec`
says what the test wants a daemon to say."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.conftest import REPOSITORY, refuse

ANSIBLE = REPOSITORY / "fleet/ansible"
BIN = Path(sys.executable).parent
TOOL_DIRECTORIES = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
DPKG_OPTIONS = ["--force-not-root", "--force-script-chrootless", "--force-unsafe-io"]

CONFIG = 'policy = "critical"\n'
OTHER = 'policy = "none"\n'

SYSTEMCTL = """\
#!/bin/sh
# systemd as far as one unit needs it. `running` holds what the daemon read when it started.
unit=$DASEC_TREE/usr/lib/systemd/system/dasec.service
link=$DASEC_TREE/etc/systemd/system/multi-user.target.wants/dasec.service
running=$DASEC_TREE/run/running
config=$DASEC_TREE/etc/dasec/dasec.toml
start() {
    rm -f "$running"
    [ -e "$unit" ] || { echo "Unit dasec.service not found." >&2; exit 5; }
    ! grep -q nonsense "$config" || { echo "Job for dasec.service failed." >&2; exit 1; }
    cat "$DASEC_TREE/usr/lib/dasec/version" "$config" >"$running"
    : >"$DASEC_TREE/run/starts/$(date +%s%N)"
}
case $1 in
daemon-reload) ;;
show)
    [ -e "$unit" ] && echo LoadState=loaded || echo LoadState=not-found
    [ -e "$running" ] && echo ActiveState=active || echo ActiveState=inactive
    ;;
is-active) [ -e "$running" ] && echo active || { echo inactive; exit 3; } ;;
is-enabled)
    [ -e "$unit" ] || { echo "Failed to get unit file state" >&2; exit 1; }
    [ -e "$link" ] && echo enabled || { echo disabled; exit 1; }
    ;;
enable) mkdir -p "${link%/*}" && : >"$link" ;;
disable) rm -f "$link" ;;
start | restart) start ;;
try-restart) [ ! -e "$running" ] || start ;;
stop) rm -f "$running" ;;
*) echo "unknown: $1" >&2; exit 1 ;;
esac
"""

DASEC = """\
#!/bin/sh
root=${0%/usr/bin/dasec}
[ "$2 $3" = "--json --directory=$root/run/dasec" ] || [ "$2" = "--directory=$root/run/dasec" ] || exit 2
[ -e "$root/run/running" ] || { echo "no daemon runs" >&2; exit 1; }
case $1 in
status) cat "$root/usr/lib/dasec/status.json" ;;
verify) [ ! -e "$root/usr/lib/dasec/unclean" ] || { echo "1 findings" >&2; exit 1; } ;;
*) exit 2 ;;
esac
"""

# As packaging/deb has them, as far as they speak to systemd.
POSTINST = """\
#!/bin/sh
set -e
[ "$1" = configure ] || exit 0
[ -z "$2" ] || systemctl try-restart dasec
"""
PRERM = """\
#!/bin/sh
[ "$1" != remove ] || { systemctl stop dasec; systemctl disable dasec; }
"""
POSTRM = """\
#!/bin/sh
[ "$1" != purge ] || rm -rf "$DPKG_ROOT/etc/dasec" "$DPKG_ROOT/var/log/dasec"
"""


def tool(name: str) -> Path:
    """A program of ansible-core or ansible-lint."""
    if not (BIN / name).exists():
        refuse(f"needs {name} (tools/setup)")
    return BIN / name


def write(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)


def package(
    directory: Path,
    version: str,
    status: Mapping[str, object],
    *,
    unclean: bool = False,
    broken: bool = False,
) -> Path:
    """A package whose daemon says `status`. `unclean`: its `verify` finds something. `broken`: it is not
    configured, as its script fails."""
    if shutil.which("dpkg-deb") is None:
        refuse("needs dpkg-deb: this is not a Debian")
    tree = directory / version
    write(tree / "usr/bin/dasec", DASEC, 0o755)
    write(tree / "usr/lib/dasec/version", f"{version}\n")
    write(tree / "usr/lib/dasec/status.json", json.dumps(status))
    if unclean:
        write(tree / "usr/lib/dasec/unclean", "")
    write(tree / "usr/lib/systemd/system/dasec.service", "[Service]\nExecStart=/usr/bin/dasec run\n")
    write(tree / "etc/dasec/dasec.toml", f"# of the package {version}\n")
    write(tree / "DEBIAN/conffiles", "/etc/dasec/dasec.toml\n")
    write(tree / "DEBIAN/postinst", "#!/bin/sh\nexit 1\n" if broken else POSTINST, 0o755)
    write(tree / "DEBIAN/prerm", PRERM, 0o755)
    write(tree / "DEBIAN/postrm", POSTRM, 0o755)
    control = ["Package: dasec", f"Version: {version}", "Architecture: all", "Maintainer: a <a@localhost>"]
    write(tree / "DEBIAN/control", "\n".join([*control, "Description: a stand-in", ""]))
    file = directory / f"dasec_{version}_all.deb"
    build = ["dpkg-deb", "--root-owner-group", "-Znone", "--build", str(tree), str(file)]
    subprocess.run(build, check=True, capture_output=True)
    shutil.rmtree(tree)
    return file


@dataclass(frozen=True)
class Host:
    """One tree."""

    root: Path

    @classmethod
    def bare(cls, root: Path) -> Host:
        """A Debian without anything."""
        folders = (
            "run/starts",
            "var/cache",
            *(f"var/lib/dpkg/{name}" for name in ("info", "updates", "triggers")),
        )
        for folder in (*folders, "etc/systemd/system/multi-user.target.wants"):
            (root / folder).mkdir(parents=True)
        write(root / "etc/hostname", "bare\n")
        for file in ("status", "available"):
            (root / "var/lib/dpkg" / file).touch()
        return cls(root)

    def package(self) -> str:
        """What dpkg says is there."""
        asked = [
            "dpkg-query",
            f"--root={self.root}/",
            "--show",
            "--showformat=${db:Status-Status} ${Version}",
            "dasec",
        ]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        return done.stdout.strip() or "not-installed"

    def starts(self) -> int:
        """How often the daemon was started."""
        return len(list((self.root / "run/starts").iterdir()))

    def runs(self) -> str:
        """Version and configuration that the running daemon has read."""
        return (self.root / "run/running").read_text(encoding="utf-8")

    def content(self) -> dict[str, tuple[str, str]]:
        """Each file's mode and content, each directory's mode; of dpkg's own state only what it says."""
        found = {"": ("dpkg", self.package())}
        for path in sorted(self.root.rglob("*")):
            name = str(path.relative_to(self.root))
            if not name.startswith(("var/lib/dpkg", "run/starts")):
                text = "" if path.is_dir() else path.read_bytes().hex()
                found[name] = (oct(path.lstat().st_mode), text)
        return found


@dataclass(frozen=True)
class Outcome:
    """How a run of the playbook ended. `changed`: how many tasks changed something, by host."""

    status: int
    said: str
    changed: Mapping[str, int]
    tasks: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Fleet:
    """Trees with the names h1, h2, …, below one directory. `lost`: the last task that reaches a host."""

    directory: Path
    names: tuple[str, ...]
    lost: Mapping[str, str] = field(default_factory=dict)

    def host(self, name: str) -> Host:
        return Host(self.directory / name)

    def content(self) -> dict[str, dict[str, tuple[str, str]]]:
        return {name: self.host(name).content() for name in self.names}

    def write_shells(self) -> Path:
        """A shell for each host, in which systemctl is that host's; the directory where they are."""
        directory = self.directory / "bin"
        write(directory / "systemctl", SYSTEMCTL, 0o755)
        write(directory / "ssh", "#!/bin/sh\nexit 255\n", 0o755)
        for name in self.names:
            environment = f"export DASEC_TREE={self.directory / name} PATH={directory}:{TOOL_DIRECTORIES}"
            write(directory / name, f'#!/bin/sh\n{environment}\nexec /bin/sh "$@"\n', 0o755)
        return directory

    def _inventory(self) -> Path:
        shells = self.write_shells()
        hosts = {
            name: {"dasec_root": str(self.directory / name), "ansible_shell_executable": str(shells / name)}
            for name in self.names
        }
        common = {
            "ansible_connection": "local",
            "ansible_ssh_executable": str(shells / "ssh"),
            "ansible_python_interpreter": sys.executable,
            "ansible_become": False,
            "ansible_remote_tmp": str(self.directory / "tmp"),
            "dasec_dpkg_options": DPKG_OPTIONS,
            "dasec_watch_looks": 1,
            "dasec_watch_pause_s": 0,
        }
        file = self.directory / "hosts.json"
        file.write_text(json.dumps({"dasec": {"hosts": hosts, "vars": common}}))
        return file

    def roll_out(self, fail: Mapping[str, str] | None = None, /, **given: object) -> Outcome:
        """Runs the playbook with these variables. `fail`: the task that is to fail at a host."""
        return self.play(ANSIBLE / "rollout.yml", given, fail or {})

    def play(self, playbook: Path, given: Mapping[str, object], fail: Mapping[str, str]) -> Outcome:
        """Runs a playbook in which the role is known."""
        seen = self.directory / "seen"
        seen.unlink(missing_ok=True)
        environment = {
            "PATH": f"{BIN}:{TOOL_DIRECTORIES}",
            "HOME": str(self.directory),
            "LC_ALL": "C.UTF-8",
            "ANSIBLE_ROLES_PATH": str(ANSIBLE / "roles"),
            "ANSIBLE_LOCAL_TEMP": str(self.directory / "tmp"),
            "ANSIBLE_PIPELINING": "1",
            "ANSIBLE_STRATEGY": "failing",
            "ANSIBLE_STRATEGY_PLUGINS": str(Path(__file__).parent / "strategy"),
            "ANSIBLE_NOCOLOR": "1",
            "DASEC_FAIL": json.dumps(fail),
            "DASEC_LOSE": json.dumps(self.lost),
            "DASEC_SEEN": str(seen),
        }
        given = {key: str(value) if isinstance(value, Path) else value for key, value in given.items()}
        command = [
            str(tool("ansible-playbook")),
            "-i",
            str(self._inventory()),
            "-e",
            json.dumps(given),
            str(playbook),
        ]
        done = subprocess.run(
            command, env=environment, cwd=self.directory, capture_output=True, text=True, check=False
        )
        changed = {}
        for line in done.stdout.partition("PLAY RECAP")[2].splitlines()[1:]:
            name, colon, counts = line.partition(":")
            if colon:
                changed[name.strip()] = int(counts.split("changed=")[1].split()[0])
        lines = seen.read_text().splitlines() if seen.exists() else []
        tasks = [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in lines]
        return Outcome(done.returncode, done.stdout + done.stderr, changed, tasks)

    def losing(self, **last: str) -> Fleet:
        """The same hosts, but nobody reaches these after that task."""
        return replace(self, lost=last)


def named(count: int) -> tuple[str, ...]:
    return tuple(f"h{number}" for number in range(1, count + 1))


def bare_fleet(directory: Path, count: int = 4) -> Fleet:
    """Hosts without DASEC."""
    fleet = Fleet(directory, named(count))
    for name in fleet.names:
        Host.bare(directory / name)
    return fleet


def like(host: Host, directory: Path, count: int) -> Fleet:
    """So many hosts that are as this one is."""
    fleet = Fleet(directory, named(count))
    for name in fleet.names:
        shutil.copytree(host.root, directory / name, symlinks=True)
    return fleet
