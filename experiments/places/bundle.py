"""What crun runs: an OCI bundle whose root is the host's, read-only. No image is built or fetched."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

OWN = ("proc", "sys", "dev", "tmp", "run", "lost+found")
"""Of these the container gets its own, or none."""

CHECKOUT = Path(__file__).resolve().parents[2]
"""May lie below a folder that the container has of its own."""

HYBRID = "/sys/fs/cgroup/unified"
"""crun 1.8.1 refuses a host where this has controllers ("cgroups in hybrid mode not supported")."""

RUN = f'''! mountpoint -q {HYBRID} || umount {HYBRID}
exec crun --root "$0/state" --cgroup-manager=disabled run --bundle "$0" "$1"'''
"""In a mount namespace of its own, so the host keeps that mount. Without a cgroup manager the container stays
in the group that crun was put into."""

CAPABILITIES = ("CAP_SETUID", "CAP_SETGID", "CAP_KILL", "CAP_DAC_OVERRIDE", "CAP_CHOWN", "CAP_SYS_NICE")


def write_bundle(
    bundle: Path, command: Sequence[str], writable: Sequence[Path], root: Path = Path("/")
) -> None:
    """Makes the folder with an empty root, on which the host's folders are mounted, and its config.json."""
    rootfs = bundle / "rootfs"
    rootfs.mkdir(parents=True)
    for entry in sorted(root.iterdir()):
        if entry.is_symlink():  # /bin is one on a merged host
            (rootfs / entry.name).symlink_to(entry.readlink())
    config = _config(command, [*_mounts(root), *map(_writable, writable)])
    (bundle / "config.json").write_text(json.dumps(config), encoding="utf-8")


def run_command(bundle: Path, name: str) -> tuple[str, ...]:
    """Runs the bundle as a container of this name, in the present cgroup."""
    return ("unshare", "--mount", "/bin/sh", "-c", RUN, str(bundle), name)


def _mounts(root: Path) -> Iterator[dict[str, object]]:
    yield {"destination": "/proc", "type": "proc", "source": "proc"}
    yield _memory("/dev", "nosuid", "mode=755")
    yield _memory("/tmp", "nosuid", "mode=1777")
    yield _memory("/run", "nosuid", "mode=755")
    for entry in sorted(root.iterdir()):
        if entry.is_dir() and not entry.is_symlink() and entry.name not in OWN:
            yield _bound(root / entry.name, f"/{entry.name}")
    if root.samefile("/"):
        yield _bound(CHECKOUT, str(CHECKOUT))


def _memory(destination: str, *options: str) -> dict[str, object]:
    return {"destination": destination, "type": "tmpfs", "source": "tmpfs", "options": list(options)}


def _bound(source: Path, destination: str, mode: str = "ro") -> dict[str, object]:
    options = ["rbind", "rprivate", mode]
    return {"destination": destination, "type": "bind", "source": str(source), "options": options}


def _writable(folder: Path) -> dict[str, object]:
    return _bound(folder, str(folder), "rw")


def _config(command: Sequence[str], mounts: Sequence[dict[str, object]]) -> dict[str, object]:
    capabilities = {kind: list(CAPABILITIES) for kind in ("bounding", "effective", "permitted")}
    return {
        "ociVersion": "1.0.0",
        "process": {
            "terminal": False,
            "user": {"uid": 0, "gid": 0},
            "args": list(command),
            "env": [f"PATH={os.environ.get('PATH', '/usr/bin:/bin')}", "HOME=/tmp"],
            "cwd": "/",
            "capabilities": capabilities,
            "noNewPrivileges": False,
        },
        "root": {"path": "rootfs", "readonly": False},
        "hostname": "workload",
        "mounts": list(mounts),
        "linux": {"namespaces": [{"type": kind} for kind in ("pid", "mount", "ipc", "uts")]},
    }


def missing_runtime() -> str | None:
    """Why no container can run here, found by running one; None: it can."""
    if shutil.which("crun") is None:
        return "crun: not found: apt-get install crun"
    with tempfile.TemporaryDirectory(prefix="dasec-bundle-") as folder:
        bundle = Path(folder) / "bundle"
        write_bundle(bundle, ["/bin/true"], ())
        done = subprocess.run(
            run_command(bundle, f"dasec-probe-{os.getpid()}"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode == 0:
        return None
    said = done.stderr.strip().splitlines() or ["no message"]
    return f"crun: a container does not run here: {said[-1]}"
