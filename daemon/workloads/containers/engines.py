"""Where each engine's runtime keeps its containers, and what people call them.

Tried: docs/containers.md. No engine is called and no socket is opened: a hanging engine is not felt here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from .state_file import LARGEST, STATE, STATUS

DOCKER, CONTAINERD, KUBERNETES, PODMAN = ENGINES = ("docker", "containerd", "k8s", "podman")

RUNC_IN_DOCKER = "run/docker/runtime-runc/moby"
RUNC_IN_CONTAINERD = "run/containerd/runc"
RUNC = "run/runc"
CRUN = "run/crun"
CRI = "k8s.io"
"""containerd's namespace of Kubernetes."""

DOCKER_NAMES = "var/lib/docker/containers"
PODMAN_NAMES = tuple(
    f"var/lib/containers/storage/{driver}-containers/containers.json" for driver in ("overlay", "vfs")
)

POD = ("io.kubernetes.cri.sandbox-namespace", "io.kubernetes.cri.sandbox-name")
CONTAINER = "io.kubernetes.cri.container-name"
KIND = "io.kubernetes.cri.container-type"
CRIO_POD = ("io.kubernetes.pod.namespace", "io.kubernetes.pod.name")
CRIO_CONTAINER = "io.kubernetes.container.name"
CRIO_KIND = "io.kubernetes.cri-o.ContainerType"
SANDBOX = "sandbox"
"""The pause container of a pod: it holds its namespaces and does nothing."""


class Home(NamedTuple):
    """The directory of one container, the file in it, and by which engine it was made."""

    engine: str
    directory: str
    file: str

    @property
    def id(self) -> str:
        """What the engine numbers it by."""
        return self.directory.rpartition("/")[2]


def homes(root: Path) -> Iterator[Home]:
    """Every container that a runtime knows below `root`, the machine's."""
    yield from _below(DOCKER, root / RUNC_IN_DOCKER, STATE)
    for namespace in _folders(root / RUNC_IN_CONTAINERD):
        engine = KUBERNETES if namespace.name == CRI else CONTAINERD
        yield from _below(engine, namespace, STATE)
    yield from _below(PODMAN, root / RUNC, STATE)
    yield from _below(PODMAN, root / CRUN, STATUS)


def stamps(root: Path) -> dict[str, int]:
    """When containers last came to each directory of runtimes, or went from it."""
    namespaces = _folders(root / RUNC_IN_CONTAINERD)
    found = {}
    for folder in (root / RUNC_IN_DOCKER, *namespaces, root / RUNC, root / CRUN):
        try:
            found[str(folder)] = folder.stat().st_mtime_ns
        except OSError:
            continue
    return found


def called(root: Path, home: Home, annotations: Mapping[str, str]) -> str | None:
    """Its name with its engine, such as "docker:web" or "k8s:default/web-7f9/app". None: it must not be
    managed, because it is a pod's pause container."""
    if SANDBOX in (annotations.get(KIND), annotations.get(CRIO_KIND)):
        return None
    for pod, container in ((POD, CONTAINER), (CRIO_POD, CRIO_CONTAINER)):
        words = [annotations.get(key) for key in (*pod, container)]
        if all(words):
            return f"{KUBERNETES}:{'/'.join(filter(None, words))}"
    names = {DOCKER: _docker_name, PODMAN: _podman_name}
    find = names.get(home.engine)
    return f"{home.engine}:{(find(root, home.id) if find else None) or home.id}"


def notes_of(root: Path, home: Home, annotations: Mapping[str, str]) -> Mapping[str, str]:
    """Its annotations; a container of Docker's has its labels, too, which the runtime does not hear of."""
    if home.engine != DOCKER:
        return annotations
    said = _docker(root, home.id)
    config = said.get("Config")
    labels = config.get("Labels") if isinstance(config, dict) else None
    pairs = labels.items() if isinstance(labels, dict) else ()
    return {**{key: value for key, value in pairs if isinstance(value, str)}, **annotations}


def _below(engine: str, folder: Path, file: str) -> Iterator[Home]:
    for each in _folders(folder):
        yield Home(engine, str(each), file)


def _folders(folder: Path) -> list[Path]:
    try:
        return sorted(each for each in folder.iterdir() if each.is_dir() and not each.is_symlink())
    except OSError:
        return []


def _docker_name(root: Path, container: str) -> str | None:
    name = _docker(root, container).get("Name")
    return name.removeprefix("/") if isinstance(name, str) else None


def _docker(root: Path, container: str) -> Mapping[str, object]:
    said = _json(root / DOCKER_NAMES / container / "config.v2.json")
    return said if isinstance(said, dict) else {}


def _podman_name(root: Path, container: str) -> str | None:
    for file in PODMAN_NAMES:
        said = _json(root / file)
        for one in said if isinstance(said, list) else ():
            if isinstance(one, dict) and one.get("id") == container:
                names = one.get("names")
                first = names[0] if isinstance(names, list) and names else None
                return first if isinstance(first, str) else None
    return None


def _json(path: Path) -> object:
    try:
        with path.open("rb") as file:
            return json.loads(file.read(LARGEST))
    except (OSError, ValueError, RecursionError):
        return None
