"""What engines write of their containers in files of their own: Docker's and Podman's names, Docker's labels.

Podman's file has all containers, those that are stopped, too; Docker's have whole configurations. So each is
parsed once, as long as it stays as it is (docs/containers.md, "Cost").
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from .engines import DOCKER, DOCKER_NAMES, PODMAN, PODMAN_NAMES, Home
from .file_stamp import FileStamp, stamp_of
from .state_file import LARGEST


class SaidByEngine(NamedTuple):
    """What an engine calls a container (None: it does not say), and its labels."""

    name: str | None
    labels: Mapping[str, str]


NONE = SaidByEngine(None, {})

_Parse = Callable[[object], Mapping[str, SaidByEngine]]
"""From a file's JSON to what it says, by the containers' ids."""


class OwnWords:
    """What the engines say now of those containers that they were last looked up for."""

    def __init__(self, root: Path) -> None:
        self._root = str(root).rstrip("/")
        self._files: dict[str, tuple[FileStamp, Mapping[str, SaidByEngine]]] = {}

    def look(self, homes: Iterable[Home]) -> None:
        """Read what has changed of these containers' files, and forget all others."""
        before, self._files = self._files, {}
        for path, parse in dict(each for home in homes for each in self._files_of(home)).items():
            known = _again(path, parse, before.get(path))
            if known is not None:
                self._files[path] = known

    def of(self, home: Home) -> SaidByEngine:
        """What is said of this one; nothing, if its engine says nothing."""
        for path, _ in self._files_of(home):
            if path in self._files and home.id in self._files[path][1]:
                return self._files[path][1][home.id]
        return NONE

    def _files_of(self, home: Home) -> Iterator[tuple[str, _Parse]]:
        if home.engine == DOCKER:
            yield f"{self._root}/{DOCKER_NAMES}/{home.id}/config.v2.json", partial(_of_docker, home.id)
        if home.engine == PODMAN:
            for file in PODMAN_NAMES:
                yield f"{self._root}/{file}", _of_podman


def _again(
    path: str, parse: _Parse, known: tuple[FileStamp, Mapping[str, SaidByEngine]] | None
) -> tuple[FileStamp, Mapping[str, SaidByEngine]] | None:
    """The file as it is now. None: there is none."""
    try:
        stamp = stamp_of(os.stat(path))
        if known is not None and known[0] == stamp:
            return known
        with open(path, "rb") as file:
            content = file.read(LARGEST)
    except OSError:
        return None
    try:
        return stamp, parse(json.loads(content))
    except (ValueError, RecursionError):
        return stamp, {}


def _of_docker(container: str, said: object) -> Mapping[str, SaidByEngine]:
    if not isinstance(said, dict):
        return {}
    name, config = said.get("Name"), said.get("Config")
    labels = config.get("Labels") if isinstance(config, dict) else None
    pairs = labels.items() if isinstance(labels, dict) else ()
    words = SaidByEngine(
        name.removeprefix("/") if isinstance(name, str) else None,
        {key: value for key, value in pairs if isinstance(value, str)},
    )
    return {container: words}


def _of_podman(said: object) -> Mapping[str, SaidByEngine]:
    found = {}
    for one in said if isinstance(said, list) else ():
        container, names = (one.get("id"), one.get("names")) if isinstance(one, dict) else (None, None)
        first = names[0] if isinstance(names, list) and names else None
        if isinstance(container, str) and isinstance(first, str):
            found[container] = SaidByEngine(first, {})
    return found
