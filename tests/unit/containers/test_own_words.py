"""What engines write of their containers themselves: read when it changes, and forgotten with them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from dasec.workloads.containers.engines import DOCKER_NAMES, PODMAN_NAMES, Home
from dasec.workloads.containers.own_words import NONE, OwnWords, SaidByEngine
from dasec.workloads.containers.state_file import STATE, STATUS

SHOP, CAMERA = Home("podman", "/run/crun/shop", STATUS), Home("podman", "/run/runc/camera", STATE)
WEB = Home("docker", "/run/docker/runtime-runc/moby/web", STATE)


def podman_says(root: Path, *said: object, file: str = PODMAN_NAMES[0]) -> Path:
    """Written as Podman does: beside the old file, then renamed."""
    path = root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".new").write_text(json.dumps(said))
    return path.with_suffix(".new").rename(path)


def docker_says(root: Path, container: str, said: object) -> Path:
    path = root / DOCKER_NAMES / container / "config.v2.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(said))
    return path


def rewrite_unseen(path: Path, before: str, after: str) -> None:
    """The file says something else, and nothing but its content tells."""
    assert len(before) == len(after)
    stamp = path.stat()
    path.write_text(path.read_text().replace(before, after))
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))


def words(own: OwnWords, *homes: Home) -> list[SaidByEngine]:
    own.look(homes)
    return [own.of(home) for home in homes]


def test_podman_names_its_containers_in_one_file(tmp_path: Path) -> None:
    podman_says(tmp_path, {"id": "other"}, {"id": "shop", "names": ["a"]}, {"id": "camera", "names": ["b"]})
    assert words(OwnWords(tmp_path), SHOP, CAMERA) == [SaidByEngine("a", {}), SaidByEngine("b", {})]


def test_docker_says_name_and_labels_in_a_file_for_each(tmp_path: Path) -> None:
    docker_says(tmp_path, "web", {"Name": "/shop", "Config": {"Labels": {"a": "b", "c": 1}}})
    assert words(OwnWords(tmp_path), WEB) == [SaidByEngine("shop", {"a": "b"})]


def test_a_file_is_parsed_again_only_when_it_has_changed_and_forgotten_with_its_containers(
    tmp_path: Path,
) -> None:
    files = (
        podman_says(tmp_path, {"id": "shop", "names": ["old"]}),
        docker_says(tmp_path, "web", {"Name": "/old"}),
    )
    own = OwnWords(tmp_path)
    assert words(own, SHOP, WEB) == [SaidByEngine("old", {})] * 2
    for path in files:
        rewrite_unseen(path, "old", "new")
    assert words(own, SHOP, WEB) == [SaidByEngine("old", {})] * 2
    own.look(())
    assert [own.of(SHOP), own.of(WEB)] == [NONE, NONE]
    assert words(own, SHOP, WEB) == [SaidByEngine("new", {})] * 2


def test_a_rename_is_seen_at_the_next_look(tmp_path: Path) -> None:
    own = OwnWords(tmp_path)
    for name in ("first", "another"):
        podman_says(tmp_path, {"id": "shop", "names": [name]})
        docker_says(tmp_path, "web", {"Name": f"/{name}"})
        assert words(own, SHOP, WEB) == [SaidByEngine(name, {})] * 2


def test_what_is_gone_says_nothing(tmp_path: Path) -> None:
    path = podman_says(tmp_path, {"id": "shop", "names": ["a"]})
    own = OwnWords(tmp_path)
    assert words(own, SHOP) == [SaidByEngine("a", {})]
    path.unlink()
    assert words(own, SHOP) == [NONE]


@pytest.mark.parametrize("said", [None, [], {}, [1], [{"id": 1}], {"Name": 1, "Config": {"Labels": []}}])
def test_whatever_is_in_a_file_it_says_something_or_nothing(tmp_path: Path, said: object) -> None:
    podman_says(tmp_path, said)
    docker_says(tmp_path, "web", said)
    assert words(OwnWords(tmp_path), SHOP, WEB) == [NONE, NONE]


def test_what_is_nested_beyond_reason_says_nothing(tmp_path: Path) -> None:
    docker_says(tmp_path, "web", {}).write_bytes(b"[" * 100_000)
    assert words(OwnWords(tmp_path), WEB) == [NONE]


def test_the_driver_of_podmans_storage_does_not_matter(tmp_path: Path) -> None:
    podman_says(tmp_path, {"id": "shop", "names": ["a"]}, file=PODMAN_NAMES[1])
    assert words(OwnWords(tmp_path), SHOP) == [SaidByEngine("a", {})]
