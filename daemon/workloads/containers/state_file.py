"""What an OCI runtime says of one container: runc's state.json and crun's status.

Both are JSON. Only what is used is looked at; all else may be missing or strange.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

STATE, STATUS = "state.json", "status"
"""The file in a container's directory, runc's and crun's."""

LARGEST = 4 * 1024 * 1024
"""Bytes of a file that are read: runc's have ten to some hundred thousand."""


class NotAState(ValueError):
    """The file says nothing that could be used; the text is why."""


class ContainerClaim(NamedTuple):
    """That this process, started then, is the first of a container. `groups`: where its cpu group is, as a
    directory (runc) or as a path from the hierarchy's root (crun)."""

    pid: int
    start_ticks: int
    groups: tuple[str, ...]
    annotations: Mapping[str, str]
    bundle: str | None = None


def parse(file: str, content: bytes) -> ContainerClaim:
    """The claim in a file of that name. Raises NotAState."""
    try:
        said = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise NotAState("is no JSON") from error
    if not isinstance(said, dict):
        raise NotAState("is no table")
    return _of_runc(said) if file == STATE else _of_crun(said)


def annotations_of(bundle_config: bytes) -> Mapping[str, str]:
    """The annotations in a bundle's config.json; none if it cannot be read."""
    try:
        said = json.loads(bundle_config)
    except (ValueError, RecursionError):
        return {}
    return _words(said.get("annotations")) if isinstance(said, dict) else {}


def _of_runc(said: Mapping[str, object]) -> ContainerClaim:
    """libcontainer's State: OCI annotations are among `config.labels` as key=value."""
    config = said.get("config")
    labels = config.get("labels") if isinstance(config, dict) else None
    pairs = [one.partition("=") for one in labels if isinstance(one, str)] if isinstance(labels, list) else []
    paths = _words(said.get("cgroup_paths"))
    groups = [paths[key] for key in ("cpu", "cpu,cpuacct", "") if key in paths]
    return _claim(
        said.get("init_process_pid"),
        said.get("init_process_start"),
        groups,
        {key: value for key, _, value in pairs},
    )


def _of_crun(said: Mapping[str, object]) -> ContainerClaim:
    group, bundle = said.get("cgroup-path"), said.get("bundle")
    groups = [group] if isinstance(group, str) else []
    claim = _claim(said.get("pid"), said.get("process-start-time"), groups, {})
    return claim._replace(bundle=bundle if isinstance(bundle, str) else None)


def _claim(pid: object, start: object, groups: list[str], annotations: Mapping[str, str]) -> ContainerClaim:
    if not isinstance(pid, int) or isinstance(pid, bool) or pid <= 0:
        raise NotAState("names no process")
    if not isinstance(start, int) or isinstance(start, bool) or start <= 0:
        raise NotAState("does not say when its process started")
    groups = [group for group in groups if group.startswith("/") and "\0" not in group]
    if not groups:
        raise NotAState("names no cgroup")
    return ContainerClaim(pid, start, tuple(groups), annotations)


def _words(table: object) -> dict[str, str]:
    pairs = table.items() if isinstance(table, dict) else ()
    return {key: value for key, value in pairs if isinstance(value, str)}
