"""What a guest's root has of an installation of TailBench, the user's own: programs of the applications that
are asked for, and the inputs that they are told of."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from guests.built import HostCannotError

from ...drivers.tailbench import INPUTS, ROOT, data_folder, root_folder
from ...drivers.tailbench_apps import APPLICATIONS, Application

INSIDE = "programs/tailbench"
"""In the guest; what stands in an application's folder under a program's name starts it from PROGRAMS."""

PROGRAMS = "programs/tailbench-programs"

HIDDEN = Path("/tmp")  # noqa: S108
"""In a guest it is empty and in memory."""

NO_REP = 1 << 30
VECTORS = "/bin/env GLIBC_TUNABLES=" + ":".join(
    f"glibc.cpu.x86_rep_{one}_threshold={NO_REP}" for one in ("stosb", "movsb")
)
"""So that memory is filled and copied by vectors: REP STOSB counts as an instruction for each byte here, and
TailBench fills 2 MB a request with zeros. A request of silo took 4.0 ms of CPU time in place of 0.36
(docs/decisions/0093-tailbench.md)."""


@dataclass(frozen=True, slots=True)
class Installed:
    """Files of the guest by where they are here."""

    programs: tuple[tuple[str, Path], ...]
    inputs: tuple[tuple[str, Path], ...]
    """Files, or folders."""
    beside: tuple[tuple[str, Path], ...] = ()
    """Files and folders that lie in an application's folder: its shared libraries, and what else it reads."""
    home: Path | None = None
    """The installation's path, if something in it was built to be found there."""

    @classmethod
    def of(cls, applications: tuple[str, ...]) -> Installed:
        """Raises HostCannotError, with a line, where one of them is not there."""
        root = root_folder()
        if applications and root is None:
            what = ", ".join(applications)
            raise HostCannotError(f"{ROOT}: not set: name the folder of an installation with {what}")
        chosen = [APPLICATIONS[name] for name in applications]
        programs = [f"{one.folder}/{one.integrated}" for one in chosen]
        inputs = sorted({name for one in chosen for name in one.inputs})
        found = cls(
            tuple((name, (root or Path()) / name) for name in programs),
            tuple((name, data_folder(root or Path()) / name) for name in inputs),
            tuple(pair for one in chosen for pair in _beside(root or Path(), one)),
            root.absolute() if root and any(one.kept for one in chosen) else None,
        )
        for name, file in found.programs:
            if not os.access(file, os.X_OK):
                raise HostCannotError(f"{file}: is not there: build {name.partition('/')[0]} in {ROOT}")
        for _, file in found.inputs:
            if not file.exists():
                raise HostCannotError(f"{file}: is not there: an input that DATA_ROOT of {ROOT} is to have")
        for name, file in found.beside:
            if not file.exists():
                raise HostCannotError(f"{file}: is not there: build {name.partition('/')[0]} in {ROOT}")
        if found.home and found.home.is_relative_to(HIDDEN):
            raise HostCannotError(
                f"{ROOT}: is below {HIDDEN}, of which a guest has its own: move it elsewhere"
            )
        return found

    def contents(self) -> Iterator[bytes]:
        """What makes a guest another one."""
        if self.home:
            yield str(self.home).encode()
        for name, file in (*self.programs, *self.inputs, *self.beside):
            parts = sorted(file.rglob("*")) if file.is_dir() else [file]
            yield from (name.encode() + part.read_bytes() for part in parts if part.is_file())

    def copy(self, tree: Path, seated: str) -> None:
        """Into a guest's root. `seated` is a script that begins PROGRAM in its seat."""
        for name, file in self.programs:
            real, script = tree / PROGRAMS / name, tree / INSIDE / name
            for path in (real, script):
                path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file.resolve(), real)
            script.write_text(seated.replace("PROGRAM", f"{VECTORS} /{PROGRAMS}/{name}"), encoding="utf-8")
            script.chmod(0o755)
        inputs = [(f"{INPUTS}/{name}", file) for name, file in self.inputs]
        for name, file in (*inputs, *self.beside):
            target = tree / INSIDE / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if file.is_dir():
                shutil.copytree(file, target)
            else:
                shutil.copy(file.resolve(), target)
        if self.home:
            here = tree / self.home.relative_to("/")
            here.parent.mkdir(parents=True, exist_ok=True)
            here.symlink_to(f"/{INSIDE}")


def _beside(root: Path, application: Application) -> Iterator[tuple[str, Path]]:
    """Without libraries of its own it has the machine's, which the linker finds."""
    folder = Path(application.folder)
    if application.libraries:
        within = folder / application.libraries
        yield from ((str(within / file.name), file) for file in sorted((root / within).glob("*.so*")))
    yield from ((str(folder / name), root / folder / name) for name in application.kept)
