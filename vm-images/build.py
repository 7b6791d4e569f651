#!/usr/bin/env python3
"""Builds guest images from their recipes, as root or not: `vm-images/build.py small python`.

Each comes to lie below /var/cache/dasec-images (not as root: ~/.cache/dasec-images; or DASEC_IMAGES_CACHE),
under a hash of its recipe and our sources; what is there is not built again. The line printed for an image is
its folder: vmlinuz, initramfs, packages (names and versions), SHA256SUMS.

Exit status: 0 done, 1 failed, 2 wrong usage, 3 this machine lacks something.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent
sys.path.insert(0, str(REPOSITORY))

from image_recipe import Recipe, RecipeError, known, read  # noqa: E402
from image_tree import TreeError, add_applets, add_libraries, keep  # noqa: E402

from guests.boot import WITH_US, one_at_a_time, pack  # noqa: E402  # this repository has to be found first
from guests.throw_away import copy_modules, modules_with_needs  # noqa: E402

SUITE = "bookworm"
LOAD = REPOSITORY / "experiments/load"
TOOLS = {
    **{"mmdebstrap": "mmdebstrap", "cpio": "cpio", "depmod": "kmod", "modprobe": "kmod"},
    **{"readelf": "binutils", "make": "make", "cc": "gcc"},
}
"""Programs, and Debian's packages that have them."""

STATIC = ("LDFLAGS=-static -s -Wl,--build-id=none", "CFLAGS=-O2")
"""The load tool brings its C library along: who builds it may have a newer one than the guest."""

ACCOUNTS = {
    "etc/passwd": "root:x:0:0:root:/tmp:/bin/sh\nnobody:x:65534:65534:nobody:/tmp:/bin/sh\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
}
"""memcached looks up the user that it is to be."""

FAILED, USAGE, HOST = 1, 2, 3


class BuildError(Exception):
    """Why there is no image, in one line, and the exit status that says it."""

    def __init__(self, line: str, status: int = FAILED) -> None:
        super().__init__(line)
        self.status = status


def main(arguments: Sequence[str]) -> int:
    """Builds what is asked for; returns the exit status."""
    parser = argparse.ArgumentParser(prog="vm-images/build.py", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("images", nargs="+", metavar="IMAGE", help=", ".join(known()))
    parser.add_argument(
        "--mirror", help="a Debian archive instead of the usual one: one of snapshot.debian.org"
    )
    parser.add_argument("--fresh", action="store_true", help="build again what is there")
    parser.add_argument("--check", action="store_true", help="build nothing: is it there, or could it be?")
    asked = parser.parse_args(arguments)
    os.environ["PATH"] += ":/usr/sbin:/sbin"  # where depmod is, and who is not root does not look
    os.environ.setdefault("SOURCE_DATE_EPOCH", "0")
    os.umask(0o022)
    try:
        for name in asked.images:
            recipe = read(name)
            if asked.check:
                print(checked(recipe, asked.mirror))
            else:
                print(image(recipe, asked.mirror, fresh=asked.fresh))
    except (RecipeError, TreeError, BuildError) as error:
        print(f"vm-images/build.py: {error}", file=sys.stderr)
        return {RecipeError: USAGE, BuildError: getattr(error, "status", FAILED)}.get(type(error), FAILED)
    except OSError as error:  # no space, or none for us
        print(f"vm-images/build.py: {error}", file=sys.stderr)
        return HOST
    except KeyboardInterrupt:
        print("vm-images/build.py: interrupted: nothing of it is left", file=sys.stderr)
        return FAILED
    return 0


def checked(recipe: Recipe, mirror: str | None) -> Path:
    """The folder of the image, or where it would be; refused where this machine could not build it. Whether
    the archive answers is not asked."""
    folder = _folder(recipe, mirror, _directory(recipe))
    if not folder.exists():
        _refuse_without_tools()
    return folder


def image(recipe: Recipe, mirror: str | None, *, fresh: bool = False) -> Path:
    """The folder of the image; built now unless it is there."""
    source = _directory(recipe)
    folder = _folder(recipe, mirror, source)
    if folder.exists() and not fresh:
        return folder
    with one_at_a_time(folder.parent):
        return _made(recipe, mirror, source, folder, fresh=fresh)


def _made(recipe: Recipe, mirror: str | None, source: Path | None, folder: Path, *, fresh: bool) -> Path:
    if folder.exists() and not fresh:  # by whoever was here before us
        return folder
    _refuse_without_tools()
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{recipe.name}-") as scratch:
        made = _build(recipe, mirror, source, Path(scratch))
        shutil.rmtree(folder, ignore_errors=True)
        made.rename(folder)
    return folder


def _refuse_without_tools() -> None:
    if missing := sorted({package for tool, package in TOOLS.items() if shutil.which(tool) is None}):
        raise BuildError(f"missing on this machine: {' '.join(missing)}: install them", HOST)


def _build(recipe: Recipe, mirror: str | None, source: Path | None, scratch: Path) -> Path:
    packages, tree, made = scratch / "packages", scratch / "tree", scratch / "made"
    made.mkdir()
    versions = _unpack(recipe, mirror, packages)
    (made / "packages").write_text("".join(f"{line}\n" for line in versions), encoding="utf-8")
    keep(packages, recipe.keep, tree)
    if recipe.directory and source:
        shutil.copytree(source, tree / recipe.directory.target, symlinks=True)
    add_libraries(packages, tree)
    add_applets(tree)
    (kernel,) = packages.glob("boot/vmlinuz-*")
    release = kernel.name.removeprefix("vmlinuz-")
    _run(["depmod", "-b", str(packages), release])
    copy_modules(modules_with_needs(packages, release, recipe.modules), tree / "modules")
    _run(["make", "-s", "-j", str(os.cpu_count()), "-C", str(LOAD), f"BUILD={scratch / 'load'}", *STATIC])
    shutil.copy(scratch / "load/dasec-load", tree / "bin/dasec-load")
    for path, text in ACCOUNTS.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text, encoding="utf-8")
    shutil.copy(HERE / "init", tree / "init")
    (tree / "init").chmod(0o755)
    pack(tree).rename(made / "initramfs")
    shutil.copy(kernel, made / "vmlinuz")
    sums = [f"{_sum(made / name)}  {name}\n" for name in ("initramfs", "packages", "vmlinuz")]
    (made / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")
    return made


def _unpack(recipe: Recipe, mirror: str | None, folder: Path) -> list[str]:
    """The packages and all that they depend on, unpacked and not installed: no script of theirs runs, so
    nothing depends on this machine. Returns names and versions."""
    archive = folder.with_suffix(".tar")
    command = ["mmdebstrap", "--quiet", "--variant=extract", f"--include={','.join(recipe.packages)}"]
    command += ['--extract-hook=ls "$1/var/cache/apt/archives"', SUITE, str(archive)]
    said = _run([*command, mirror] if mirror else command)
    folder.mkdir()
    # Nodes of devices are the kernel's to make, and not everybody's.
    _run(["tar", "-x", "-f", str(archive), "-C", str(folder), "--no-same-owner", "--exclude=./dev/*"])
    archive.unlink()
    names = (line.removesuffix(".deb") for line in said.splitlines() if line.endswith(".deb"))
    return sorted(unquote(name).rpartition("_")[0].replace("_", " ") for name in names)


def _directory(recipe: Recipe) -> Path | None:
    """The directory that the user has to name."""
    if recipe.directory is None:
        return None
    variable = recipe.directory.variable
    named = os.environ.get(variable)
    if not named:
        raise BuildError(
            f"{recipe.name}: {variable}: not set: name the directory of your installation", USAGE
        )
    if not Path(named).is_dir():
        raise BuildError(f"{recipe.name}: {variable}: {named}: is no directory", USAGE)
    return Path(named).resolve()


def _folder(recipe: Recipe, mirror: str | None, source: Path | None) -> Path:
    return _cache() / f"{recipe.name}-{_key(recipe, mirror, source)}"


def _cache() -> Path:
    if named := os.environ.get("DASEC_IMAGES_CACHE"):
        return Path(named)
    below = Path("/var/cache") if os.geteuid() == 0 else Path.home() / ".cache"
    return below / "dasec-images"


def _key(recipe: Recipe, mirror: str | None, source: Path | None) -> str:
    """What decides what comes out, but for the versions that the archive has."""
    digest = hashlib.sha256(f"{recipe} {mirror} {os.environ['SOURCE_DATE_EPOCH']}".encode())
    for path in (
        HERE / "init",
        *sorted(HERE.glob("*.py")),
        LOAD / "Makefile",
        *sorted((LOAD / "src").iterdir()),
    ):
        digest.update(path.name.encode() + path.read_bytes())
    for line in _listing(source) if source else ():
        digest.update(line.encode())
    return digest.hexdigest()[:16]


def _listing(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*")):
        stat = path.lstat()
        yield f"{path.relative_to(folder)} {stat.st_mode} {stat.st_size} {stat.st_mtime_ns}\n"


def _sum(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _run(command: Sequence[str]) -> str:
    ours = [*WITH_US, *command]
    done = subprocess.run(ours, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise BuildError(f"{command[0]}: {said[-1] if said else f'exit status {done.returncode}'}")
    return done.stdout + done.stderr  # mmdebstrap's hooks speak on the latter


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # half an image is a gigabyte in the cache
    sys.exit(main(sys.argv[1:]))
