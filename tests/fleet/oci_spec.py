"""What kubelet and containerd make of a pod's container for the runtime, beside seccomp and AppArmor, which
this kernel may lack."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OUTSIDE = "/proc/1/ns/cgroup"
PATHS = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""What an image of Debian's has."""


@dataclass(frozen=True, slots=True)
class Node:
    """Where the pod is started."""

    root: Path
    """What the image holds, unpacked."""
    behind: Mapping[str, Path]
    """What lies at a hostPath here; others are taken as they are."""
    config: Path
    """The folder that the ConfigMap is here."""
    environment: tuple[str, ...] = ()
    memory_bytes: int = 0
    """The limit; 0 is none."""


def plain_spec() -> dict[str, Any]:
    """The runtime's own proposal."""
    with tempfile.TemporaryDirectory() as bundle:
        subprocess.run(["runc", "spec", "--bundle", bundle], check=True)
        spec: dict[str, Any] = json.loads(Path(bundle, "config.json").read_text())
    spec["process"] |= {"terminal": False, "cwd": "/", "rlimits": []}
    return spec


def spec_of(pod: Mapping[str, Any], container: Mapping[str, Any], group: str, node: Node) -> dict[str, Any]:
    """One container of a pod, in that cgroup."""
    spec, may = plain_spec(), container["securityContext"]
    process = spec["process"]
    words = (*container["command"], *container.get("args", ()))
    shared = {"pid"} if pod.get("hostPID") else set()
    process["args"] = [word.replace(OUTSIDE, _outside()) if shared else word for word in words]
    process["env"] = [PATHS, *node.environment]
    process["noNewPrivileges"] = not may["allowPrivilegeEscalation"]
    has = [f"CAP_{name}" for name in may["capabilities"].get("add", ())]
    process["capabilities"] = dict.fromkeys(("bounding", "effective", "permitted"), has)
    spec["root"] = {"path": str(node.root), "readonly": may["readOnlyRootFilesystem"]}
    spec["mounts"] = [each for each in spec["mounts"] if each["destination"] != "/sys/fs/cgroup"]
    spec["mounts"] += _mounts(container, pod, node)
    linux = spec["linux"]
    linux["namespaces"] = [each for each in linux["namespaces"] if each["type"] not in shared]
    linux["cgroupsPath"] = group
    if node.memory_bytes:
        linux["resources"]["memory"] = {"limit": node.memory_bytes}
    return spec


def _mounts(container: Mapping[str, Any], pod: Mapping[str, Any], node: Node) -> Iterator[dict[str, Any]]:
    volumes = {each["name"]: each for each in pod["volumes"]}
    for mount in container["volumeMounts"]:
        volume = volumes[mount["name"]]
        path = volume["hostPath"]["path"] if "hostPath" in volume else ""
        source = node.behind.get(path, Path(path)) if path else node.config
        how = "ro" if mount.get("readOnly") else "rw"
        yield {
            "destination": mount["mountPath"],
            "type": "bind",
            "source": str(source),
            "options": ["rbind", "rslave", how],
        }


def _outside() -> str:
    """Where a process of the host's cgroup namespace is found: this one, where the first is closed even to
    root (CI's machine)."""
    try:
        os.readlink(OUTSIDE)
    except PermissionError:
        return f"/proc/{os.getpid()}/ns/cgroup"
    return OUTSIDE
