"""Recipes of guest images that are wrong, and a build that cannot be or is told to stop."""

from __future__ import annotations

import importlib
import os
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

from dasec.lab.kit.process import descendants
from guests.built import IMAGES
from guests.waiting import gone, wait_for

NO_PATH = "is no path below the guest's root: usr/bin/name is"
TOOLS = ("mmdebstrap", "cpio", "depmod", "modprobe", "readelf", "make", "cc")


@pytest.fixture
def recipes(repository: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(repository / "vm-images")
    return importlib.import_module("image_recipe")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('extends = "mine"', "mine.toml: extends: leads back to it by mine"),
        ('keep = ["/etc/passwd"]', f"mine.toml: keep: /etc/passwd: {NO_PATH}"),
        ('keep = ["usr/../../etc"]', f"mine.toml: keep: usr/../../etc: {NO_PATH}"),
        ('directory = { variable = "V", target = "/opt/x" }', f"mine.toml: directory: /opt/x: {NO_PATH}"),
        ('directory = { variable = "V", target = "" }', f"mine.toml: directory: : {NO_PATH}"),
    ],
)
def test_a_recipe_that_leads_out_of_the_image_or_back_to_itself_is_refused_in_one_line(
    recipes: ModuleType, tmp_path: Path, text: str, why: str
) -> None:
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    with pytest.raises(recipes.RecipeError) as caught:
        recipes.read("mine", tmp_path)
    assert str(caught.value) == why


def test_our_own_recipes_are_taken(recipes: ModuleType) -> None:
    assert [recipes.read(name).name for name in recipes.known()] == ["python", "small", "tailbench"]


def with_stubs(folder: Path, cache: Path) -> dict[str, str]:
    """Tools of which the first one never ends."""
    folder.mkdir()
    for tool in TOOLS:
        (folder / tool).write_text("#!/bin/sh\nexec sleep 3600\n", encoding="utf-8")
        (folder / tool).chmod(0o755)
    path = f"{folder}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "DASEC_IMAGES_CACHE": str(cache)}


def test_a_build_that_is_told_to_stop_leaves_nothing(tmp_path: Path) -> None:
    cache, environment = tmp_path / "cache", with_stubs(tmp_path / "bin", tmp_path / "cache")
    command = [*IMAGES, "small"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as build:
        wait_for(lambda: bool(list(cache.glob("small-*"))) and len(list(descendants(build.pid))) > 1)
        below = [pid for pid in descendants(build.pid) if pid != build.pid]
        build.terminate()
        _, said = build.communicate()
    assert (build.returncode, said) == (1, "vm-images/build.py: interrupted: nothing of it is left\n")
    assert [path.name for path in cache.iterdir()] == ["lock"]
    wait_for(lambda: all(map(gone, below)))


def test_a_cache_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    environment = with_stubs(tmp_path / "bin", file / "cache")
    done = subprocess.run(
        [*IMAGES, "small"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 3
    assert done.stderr == f"vm-images/build.py: [Errno 20] Not a directory: '{file / 'cache'}'\n"
