"""Programs of Debian for a guest's root: those of the machine, or of packages that are unpacked for it; what
its compilers make of our own source; and applications that the user has installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from guests.built import HostCannotError
from guests.packages import unpacked

from .compiled import TARGETS, compiled
from .installed import Installed

CACHE = Path("/var/cache/dasec-guest/programs")
FOLDER = "programs"
"""In the guest; what stands in /bin under a program's name starts it from there."""

LIBRARY = ".so"
"""Nobody starts what ends so."""

RUNTIMES = ("dasec-java", "dasec-postgres", "dasec-gluoncv", "dasec-kvm")
"""Programs whose files are in a folder of their own, which goes along as it is."""

PLACES = ("usr/sbin", "usr/bin")
TOOLS = ("apt-get", "dpkg-deb")
USERS = "root:x:0:0:root:/tmp:/bin/sh\nnobody:x:65534:65534:nobody:/tmp:/bin/sh\n"
GROUPS = "root:x:0:\nnogroup:x:65534:\n"


@dataclass(frozen=True, slots=True)
class Programs:
    """By their names, and where packages of theirs are unpacked that the machine lacks."""

    files: Mapping[str, Path]
    root: Path
    installed: Installed = Installed((), ())
    """What is the user's."""

    @classmethod
    def of(cls, packages: Mapping[str, str], applications: tuple[str, ...] = ()) -> Programs:
        """Programs with their packages, fetched once, and applications of TailBench. Raises
        HostCannotError."""
        installed = Installed.of(applications)
        missing = [tool for tool in TOOLS if shutil.which(tool) is None]
        if missing:
            raise HostCannotError(f"counted guest: {', '.join(missing)}: not found: install what provides it")
        try:
            root = unpacked(sorted(packages.values()), CACHE)
        except RuntimeError as error:
            raise HostCannotError(f"counted guest: {error}") from error
        found = {
            name: compiled(name, root, CACHE) if name in TARGETS else _find(name, root)
            for name in sorted(packages)
        }
        return cls(found, root, installed)

    def contents(self) -> Iterator[bytes]:
        """What makes a guest another one."""
        for name, file in self.files.items():
            parts = sorted(home.rglob("*")) if (home := _home(file)) else [file]
            yield from (name.encode() + part.read_bytes() for part in parts if part.is_file())
        yield from self.installed.contents()

    def copy(self, tree: Path, seated: str) -> None:
        """Into a guest's root. `seated` is a script that begins PROGRAM in its seat."""
        folder = tree / FOLDER
        folder.mkdir()
        for name, file in self.files.items():
            if home := _home(file):
                shutil.copytree(home, folder / name)
                inside = f"{FOLDER}/{name}/{file.resolve().relative_to(home)}"
            else:
                shutil.copy(file.resolve(), folder / name)
                inside = f"{FOLDER}/{name}"
            if file.suffix == LIBRARY:
                continue
            script = tree / "bin" / name
            script.write_text(seated.replace("PROGRAM", f"/{inside}"), encoding="utf-8")
            script.chmod(0o755)
        self.installed.copy(tree, seated)
        (tree / "etc").mkdir(exist_ok=True)
        (tree / "etc/passwd").write_text(USERS, encoding="ascii")
        (tree / "etc/group").write_text(GROUPS, encoding="ascii")

    @property
    def environment(self) -> Mapping[str, str]:
        """In which the dynamic linker finds their libraries here."""
        folders = sorted({str(path.parent) for path in self.root.glob("usr/lib/*-linux-gnu*/*.so*")})
        return {**os.environ, "LD_LIBRARY_PATH": ":".join(folders)} if folders else dict(os.environ)

    def inside(self, file: Path) -> Path:
        """Where a file of theirs or of the machine lies in the guest, without the slash."""
        return file.relative_to(self.root if file.is_relative_to(self.root) else "/")


def _home(file: Path) -> Path | None:
    """The folder with all that a program looks for beside itself, if it is a link into one."""
    return file.resolve().parents[1] if file.name in RUNTIMES else None


def _find(name: str, root: Path) -> Path:
    for place in PLACES:
        for top in (root, Path("/")):
            if (file := top / place / name).exists():
                return file
    raise HostCannotError(f"counted guest: {name}: not in the packages that were unpacked: {root}")


def needed_by(program: Path, environment: Mapping[str, str] | None = None) -> str:
    """As ldd lists it."""
    return subprocess.run(
        ["ldd", str(program)], capture_output=True, text=True, check=False, env=environment
    ).stdout
