"""The daemon's container as the manifest wants it, by a real containerd, without a cluster and an image.

The root is an overlay over this machine's own: the container has this Python and this clone. containerd and
its state lie in a directory of the test's; this machine's own, should there be one, is not asked.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from dasec.linux import cgroupfs
from guests.waiting import wait_for

from .manifests import container_of, daemonset_of

REPOSITORY = Path(__file__).parents[2]
NAME = "dasec-daemon"
GROUP = "/dasec-pod/container"
OTHER_NAME, OTHER_GROUP = "dasec-other", "/dasec-pod/other"
OUTSIDE = "/proc/1/ns/cgroup"


class Pod:
    """One container of the manifest, under one containerd."""

    def __init__(self, place: Path, hosts: Mapping[str, Path], memory_bytes: int = 0) -> None:
        """`hosts`: what lies behind a hostPath here; others are taken as they are."""
        self._place, self._hosts, self._memory_bytes = place, dict(hosts), memory_bytes
        self._root, self._socket = place / "root", place / "socket"

    @contextmanager
    def engine(self) -> Iterator[Self]:
        """containerd, and the root over which the container runs."""
        for name in ("root", "upper", "work", "lib", "run"):
            (self._place / name).mkdir()
        layers = f"lowerdir=/,upperdir={self._place}/upper,workdir={self._place}/work"
        (self._place / "config.toml").write_text(
            "version = 2\ndisabled_plugins = ['io.containerd.grpc.v1.cri']\n"
        )
        _do("mount", "-t", "overlay", "-o", layers, "overlay", str(self._root))
        command = ["containerd", "--config", str(self._place / "config.toml"), "--address", str(self._socket)]
        command += ["--root", str(self._place / "lib"), "--state", str(self._place / "run")]
        with (self._place / "log").open("wb") as log:
            process = subprocess.Popen(command, stderr=log)
        try:
            wait_for(lambda: self._ctr("version", check=False).returncode == 0 or process.poll() is not None)
            assert process.poll() is None, (self._place / "log").read_text()
            yield self
        finally:
            for name in (NAME, OTHER_NAME):
                self._ctr("task", "delete", "--force", name, check=False)
                self._ctr("container", "delete", name, check=False)
            process.terminate()
            process.wait()
            _do("umount", str(self._root))
            for mount in cgroupfs.tops():
                for group in (mount + GROUP, mount + OTHER_GROUP, os.path.dirname(mount + GROUP)):
                    cgroupfs.remove_group(group)

    def start(self, config: Path) -> int:
        """The first process of the daemon's container, which is the daemon."""
        spec = self._place / "spec.json"
        spec.write_text(json.dumps(self._spec(config)))
        pid = self._place / "pid"
        files = ("--pid-file", str(pid), "--log-uri", f"file://{self._place}/said")
        self._ctr("run", "--detach", "--config", str(spec), *files, NAME)
        return int(pid.read_text())

    def start_other(self, annotations: Mapping[str, str]) -> int:
        """Somebody else's container beside it; its first process, which has slept since."""
        bundle = self._place / "other"
        bundle.mkdir()
        _do("runc", "spec", "--bundle", str(bundle))
        spec: dict[str, Any] = json.loads((bundle / "config.json").read_text())
        spec["process"] |= {"terminal": False, "args": ["sleep", "1000"], "cwd": "/", "rlimits": []}
        spec["root"] = {"path": str(self._root), "readonly": True}
        spec["linux"]["cgroupsPath"] = OTHER_GROUP
        spec["annotations"] = dict(annotations)
        (bundle / "config.json").write_text(json.dumps(spec))
        pid = self._place / "other-pid"
        given = ("--config", str(bundle / "config.json"), "--pid-file", str(pid))
        self._ctr("run", "--detach", *given, "--log-uri", f"file://{self._place}/other-said", OTHER_NAME)
        return int(pid.read_text())

    def said(self) -> str:
        """By the daemon and its keeper."""
        return (self._place / "said").read_text()

    def kill(self) -> None:
        """All of it, by the engine."""
        self._ctr("task", "kill", "--all", "--signal", "SIGKILL", NAME)

    def remove(self) -> None:
        """The container with everything in it."""
        self._ctr("task", "delete", "--force", NAME)
        self._ctr("container", "delete", NAME)

    def execute(self, *program: str) -> None:
        """One more process in it; waits for its end, however it ends."""
        self._ctr("task", "exec", "--exec-id", "other", NAME, *program, check=False)

    def _ctr(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = ["ctr", "--address", str(self._socket), *words]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        assert not check or done.returncode == 0, done.stderr
        return done

    def _spec(self, config: Path) -> dict[str, Any]:
        """As containerd makes it of such a pod, beside seccomp and AppArmor, which this kernel may lack."""
        bundle = self._place / "bundle"
        bundle.mkdir()
        _do("runc", "spec", "--bundle", str(bundle))
        spec: dict[str, Any] = json.loads((bundle / "config.json").read_text())
        container, pod = container_of("base"), daemonset_of("base")["spec"]["template"]["spec"]
        may = container["securityContext"]
        has = [f"CAP_{name}" for name in may["capabilities"]["add"] if _is_ours(name)]
        process = spec["process"]
        process |= {"terminal": False, "args": self._command(container), "cwd": "/", "rlimits": []}
        process["noNewPrivileges"] = not may["allowPrivilegeEscalation"]
        process["capabilities"] = dict.fromkeys(("bounding", "effective", "permitted"), has)
        process["env"] = ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", f"PYTHONPATH={REPOSITORY / '.typing'}"]
        spec["root"] = {"path": str(self._root), "readonly": may["readOnlyRootFilesystem"]}
        spec["mounts"] = [each for each in spec["mounts"] if each["destination"] != "/sys/fs/cgroup"]
        spec["mounts"] += self._mounts(container, pod, config)
        shared = {"pid"} if pod["hostPID"] else set()
        spec["linux"]["namespaces"] = [
            each for each in spec["linux"]["namespaces"] if each["type"] not in shared
        ]
        spec["linux"]["cgroupsPath"] = GROUP
        if self._memory_bytes:
            spec["linux"]["resources"]["memory"] = {"limit": self._memory_bytes}
        return spec

    def _command(self, container: Mapping[str, Any]) -> list[str]:
        words = [each.replace(OUTSIDE, _outside()) for each in (*container["command"], *container["args"])]
        at = words.index("/usr/bin/dasec")
        return [*words[:at], sys.executable, "-m", "dasec", *words[at + 1 :]]

    def _mounts(
        self, container: Mapping[str, Any], pod: Mapping[str, Any], config: Path
    ) -> Iterator[dict[str, Any]]:
        volumes = {each["name"]: each for each in pod["volumes"]}
        for mount in container["volumeMounts"]:
            volume = volumes[mount["name"]]
            path = volume["hostPath"]["path"] if "hostPath" in volume else ""
            source = self._hosts.get(path, Path(path)) if path else config.parent
            how = "ro" if mount.get("readOnly") else "rw"
            yield {
                "destination": mount["mountPath"],
                "type": "bind",
                "source": str(source),
                "options": ["rbind", "rslave", how],
            }


def _is_ours(capability: str) -> bool:
    """May this machine's root give it away? That of CI's has no SYS_RESOURCE."""
    numbers = {"SYS_RESOURCE": 24}
    ours = int(Path("/proc/self/status").read_text().split("CapEff:")[1].split()[0], 16)
    return capability not in numbers or bool(ours & 1 << numbers[capability])


def _outside() -> str:
    """Where a process of the host's cgroup namespace is found: this one, where the first is closed even to
    root (CI's machine)."""
    try:
        os.readlink(OUTSIDE)
    except PermissionError:
        return f"/proc/{os.getpid()}/ns/cgroup"
    return OUTSIDE


def _do(*command: str) -> None:
    subprocess.run(command, check=True)
