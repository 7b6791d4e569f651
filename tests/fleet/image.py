"""An image of the Dockerfile, built by Podman, without a registry: what FROM names is made by mmdebstrap.

Podman and its store lie in a place of their own (guests/engines). Only while it builds does it see the
machine's network, where apt finds Debian's archive.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from guests.engines.place import Place
from guests.engines.podman import LIMITS, PODMAN
from tests.conftest import refuse

from .manifests import FOLDER

DOCKERFILE = FOLDER / "Dockerfile"
NAME = "localhost/dasec:test"

APART = ("unshare", "--mount", "--mount-proc", "--pid", "--fork", "--kill-child")
SLIM = tuple(f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("doc", "info", "locale", "man"))
"""Debian's slim image leaves these out of every package (debuerreotype)."""


class Builder:
    """Podman's store, with the image that FROM names in it."""

    def __init__(self, place: Place, folder: Path) -> None:
        self._place, self._folder = place, folder
        base = re.search(r"^FROM (?P<name>debian:13-slim)$", DOCKERFILE.read_text(), re.MULTILINE)
        assert base is not None, "another base image than this makes"
        root = folder / "root.tar"
        _do([*APART, "mmdebstrap", "--quiet", "--variant=minbase", *SLIM, "trixie", str(root)])
        self._podman("import", str(root), f"docker.io/library/{base['name']}")
        root.unlink()

    @classmethod
    @contextmanager
    def opened(cls, folder: Path) -> Iterator[Self]:
        """Nothing is left of it but what lies in the folder."""
        if shutil.which("mmdebstrap") is None:
            refuse("needs mmdebstrap")
        place = Place(folder / "log")
        try:
            yield cls(place, folder)
        finally:
            place.close()

    def build(self, context: Path) -> None:
        """As docs/fleet.md says, of a folder like `dist`. RuntimeError with what was said if it fails."""
        given = ("--pull=never", "--network", "host", "--tag", NAME, "--file", str(DOCKERFILE))
        self._podman("build", *given, str(context))

    def save(self) -> Path:
        """The image as an archive."""
        archive = self._folder / "image.tar"
        self._podman("save", "--output", str(archive), NAME)
        return archive

    def run(self, *words: str, options: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        """`docker run` of it with these words, with a network that nobody else is in."""
        command = (*PODMAN, "run", "--rm", "--network", "host", *LIMITS, *options, NAME, *words)
        return subprocess.run(
            self._place.inside(*command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def _podman(self, *words: str) -> None:
        _do([*self._place.files(), *PODMAN, *words])


def _do(command: Sequence[str]) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
