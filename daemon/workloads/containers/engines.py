"""Where each engine's runtime keeps its containers, and what people call them.

Tried: docs/containers.md. No engine is called and no socket is opened: a hanging engine is not felt here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from .state_file import STATE, STATUS

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

SANDBOX = "sandbox"
"""The pause container of a pod: it holds its namespaces and does nothing."""

CRUNS_OWN = "container"
"""The group that crun makes in a scope of systemd's, and puts the container into."""


class PodKeys(NamedTuple):
    """The annotations by which an engine of Kubernetes says what a container is, and of which pod."""

    kind: str
    name: tuple[str, str, str]


BY_CONTAINERD = PodKeys(
    "io.kubernetes.cri.container-type",
    (
        "io.kubernetes.cri.sandbox-namespace",
        "io.kubernetes.cri.sandbox-name",
        "io.kubernetes.cri.container-name",
    ),
)
BY_CRIO = PodKeys(
    "io.kubernetes.cri-o.ContainerType",
    ("io.kubernetes.pod.namespace", "io.kubernetes.pod.name", "io.kubernetes.container.name"),
)


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
        engine = KUBERNETES if os.path.basename(namespace) == CRI else CONTAINERD
        yield from _below(engine, namespace, STATE)
    yield from _below(PODMAN, root / RUNC, STATE)
    yield from _below(PODMAN, root / CRUN, STATUS)


def stamps(root: Path) -> dict[str, int]:
    """When containers last came to each directory of runtimes, or went from it."""
    others = (f"{root}/{each}" for each in (RUNC_IN_DOCKER, RUNC, CRUN))
    found = {}
    for folder in (*others, *_folders(root / RUNC_IN_CONTAINERD)):
        try:
            found[folder] = os.stat(folder).st_mtime_ns
        except OSError:
            continue
    return found


def called(home: Home, group: str, annotations: Mapping[str, str], own_name: str | None) -> str | None:
    """Its name with its engine, such as "docker:web" or "k8s:default/web-7f9/app". None: it must not be
    managed, because it is a pod's pause container. `group`: its cpu group; `own_name`: what its engine calls
    it."""
    keys = _keys(home, group, annotations)
    if keys is not None:
        if annotations.get(keys.kind) == SANDBOX:
            return None
        words = [annotations.get(key) for key in keys.name]
        if all(words):
            return f"{KUBERNETES}:{'/'.join(filter(None, words))}"
    return f"{home.engine}:{own_name or home.id}"


def _keys(home: Home, group: str, annotations: Mapping[str, str]) -> PodKeys | None:
    """Whoever starts a container of Docker or Podman may write any annotation, but has no say in where its
    state lies or in the last part of its group (docs/decisions/0118-whose-annotations.md). None: it is no
    pod's."""
    if home.engine == KUBERNETES:
        return BY_CONTAINERD
    last = group.removesuffix(f"/{CRUNS_OWN}").rpartition("/")[2].removesuffix(".scope")
    of_crio = home.engine == PODMAN and last == f"crio-{home.id}" and BY_CRIO.kind in annotations
    return BY_CRIO if of_crio else None


def _below(engine: str, folder: Path | str, file: str) -> Iterator[Home]:
    for each in _folders(folder):
        yield Home(engine, each, file)


def _folders(folder: Path | str) -> list[str]:
    """Links are none."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []
