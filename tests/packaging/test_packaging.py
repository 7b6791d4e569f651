"""What an administrator installs: source archive, wheel, and `import dasec` from a place of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

PARTS = ("setup.py", "pyproject.toml", "README.md", "LICENSE")
BUILD_SDIST = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def sdist(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, because setuptools leaves build/ behind and picks up what lies in it."""
    clone = tmp_path_factory.mktemp("clone")
    for part in PARTS:
        shutil.copy(repository / part, clone / part)
    shutil.copytree(repository / "LICENSES", clone / "LICENSES")
    shutil.copytree(repository / "daemon", clone / "daemon", ignore=shutil.ignore_patterns("__pycache__"))
    run(sys.executable, "-c", BUILD_SDIST, clone / "out", cwd=clone)
    (archive,) = (clone / "out").glob("dasec-*.tar.gz")
    return archive


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the source archive, which thereby proves complete."""
    folder = tmp_path_factory.mktemp("unpacked")
    shutil.unpack_archive(sdist, folder)
    (tree,) = folder.iterdir()
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel")
    run(
        *pip,
        "--no-deps",
        "--no-index",
        "--no-build-isolation",
        "--wheel-dir",
        folder / "out",
        tree,
        cwd=folder,
    )
    (built,) = (folder / "out").glob("dasec-*.whl")
    return built


def test_the_wheel_holds_every_module_the_type_marker_and_nothing_called_daemon(
    repository: Path, wheel: Path
) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    sources = (repository / "daemon").rglob("*.py")
    modules = {f"dasec/{path.relative_to(repository / 'daemon')}" for path in sources}
    programs = {f"dasec/bpf/{path.name}" for path in (repository / "daemon/bpf").glob("*.[cho]")}
    assert {name for name in names if name.startswith("dasec/")} == modules | programs | {"dasec/py.typed"}
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"dasec"}
    for text in ("LICENSE", "GPL-2.0-only.txt"):
        assert any(name.endswith(text) for name in names)


def test_a_fresh_environment_imports_the_installed_package(wheel: Path, tmp_path: Path) -> None:
    environment = tmp_path / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", environment, cwd=tmp_path)
    python = environment / "bin/python"
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
    run(*pip, "install", "--no-deps", "--no-index", wheel, cwd=tmp_path)
    place = run(python, "-c", "import dasec.model; print(dasec.model.__file__)", cwd=tmp_path)
    assert Path(place.strip()).is_relative_to(environment)
    assert (environment / "bin/dasec").exists()


def test_the_editable_package_is_the_clone(repository: Path, tmp_path: Path) -> None:
    place = run(sys.executable, "-c", "import dasec; print(dasec.__file__)", cwd=tmp_path)
    assert place.strip() == str(repository / "daemon/__init__.py")


@pytest.mark.host
@pytest.mark.parametrize("left", [[], ["journal"]])
def test_a_purge_takes_the_state_only_where_everything_was_put_back(
    repository: Path, left: list[str]
) -> None:
    places = ("/run/dasec", "/etc/dasec", "/var/log/dasec")
    steps = ["for place in /run /etc /var/log; do mount -t tmpfs none $place; done"]
    steps += [f"mkdir {place}" for place in places]
    steps += [f"touch /run/dasec/{name}" for name in ("status.json", *left)]
    steps += [f"sh {repository}/packaging/deb/postrm purge", f"ls -d {' '.join(places)} || true"]
    done = run("unshare", "--mount", "sh", "-ec", "; ".join(steps), cwd=repository)
    assert done.split() == (["/run/dasec"] if left else [])
