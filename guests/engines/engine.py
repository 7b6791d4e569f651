"""What tests ask of every engine."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from guests.engines import image
from guests.engines.place import Place

PROGRAM = ("/bin/sleep", "100000")
"""What each container runs: nothing that another test would feel."""

NO_ANNOTATIONS: Mapping[str, str] = {}


class Engine(Protocol):
    """One engine in a place of its own. Containers are given by the name that people use."""

    place: Place

    def called(self, name: str) -> str:
        """As DASEC calls it: "docker:web"."""

    def start(self, name: str, annotations: Mapping[str, str] = NO_ANNOTATIONS) -> None:
        """Make it and start it."""

    def pid(self, name: str) -> int:
        """Its first process, by what the engine says."""

    def execute(self, name: str) -> None:
        """One more process in it."""

    def restart(self, name: str) -> None:
        """End it and start it again."""

    def remove(self, name: str) -> None:
        """Kill it, and forget it."""


def with_image(place: Place) -> str:
    """The path of the image, as the engines see it."""
    path = "/run/busy.tar"
    image.write(place.root / path.lstrip("/"))
    return path


def lay_out(root: Path) -> None:
    """The image's files in a folder."""
    (root / "bin").mkdir(parents=True)
    for name in image.FOLDERS:
        (root / name).mkdir(exist_ok=True)
    shutil.copy(image.busybox(), root / "bin/busybox")
    for name in image.APPLETS:
        (root / "bin" / name).symlink_to("busybox")
