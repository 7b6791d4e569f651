"""What is made for a guest's root by programs of Debian (experiments/services): services of our own source by
compilers, a cluster of PostgreSQL by its initdb, a server with RocksDB in it, what holds TailBench, GluonCV's
models by GluonCV."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from guests.bare.built import key as sources_of_the_guest
from guests.boot import one_at_a_time
from guests.built import HostCannotError
from guests.packages import said

from ...drivers.gluoncv import environment_folder, missing_environment

SOURCE = Path(__file__).resolve().parents[2] / "services"


@dataclass(frozen=True, slots=True)
class Target:
    """Of the Makefile there."""

    name: str
    variable: str
    """That names the compiler, or what else makes it."""
    compiler: str
    """Where its package has it."""
    levels: int = 0
    """From there up to what the variable names."""
    home: Callable[[], Path] | None = None
    """Where it is looked for in place of the packages."""
    also: Callable[[], str] | None = None
    """Says what it is made of beside the source here."""


TARGETS: Mapping[str, Target] = {
    "dasec-go": Target("go", "GO", "usr/bin/go"),
    "dasec-postgres": Target("postgres", "INITDB", "usr/lib/postgresql/*/bin/initdb"),
    "dasec-rocksdb": Target("rocksdb", "ROCKSDB", "usr/include/rocksdb/c.h"),
    "dasec-java": Target("java", "JDK", "usr/lib/jvm/*/bin/javac", 2),
    "dasec-gluoncv": Target(
        "gluoncv", "GLUONCV", "lib/python*/site-packages/mxnet/libmxnet.so", 5, environment_folder
    ),
    "dasec-kvm": Target("kvm", "QEMU", "usr/bin/qemu-system-x86_64", also=sources_of_the_guest),
    "dasec-gate.so": Target("gate", "CC", "usr/bin/gcc"),
}
"""By their programs."""


def compiled(program: str, root: Path, cache: Path) -> Path:
    """The program, made once of this source by this compiler. Raises HostCannotError."""
    target = TARGETS[program]
    compiler = _compiler(target, root)
    known = compiler.stat()
    source = hashlib.sha256(f"{compiler} {known.st_size} {known.st_mtime_ns}".encode())
    source.update(target.also().encode() if target.also else b"")
    for path in sorted(path for path in SOURCE.iterdir() if path.is_file()):
        source.update(path.name.encode() + path.read_bytes())
    made = cache / f"{target.name}-{source.hexdigest()[:16]}"
    if not made.exists():
        with one_at_a_time(cache):
            if not made.exists():  # made by whoever was here before us
                _make(target, compiler, made)
    return made / program


def _compiler(target: Target, root: Path) -> Path:
    for top in (target.home(),) if target.home else (root, Path("/")):
        if found := sorted(top.glob(target.compiler)):
            return found[0]
    if target.home:
        reason = missing_environment() or f"{target.home()}: no {target.compiler}"
        raise HostCannotError(f"counted guest: {target.name}: {reason}")
    raise HostCannotError(f"counted guest: {target.compiler}: not in the packages that were unpacked: {root}")


def _make(target: Target, compiler: Path, made: Path) -> None:
    unfinished = made.with_name("unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    named = compiler.parents[target.levels - 1] if target.levels else compiler
    command = ("make", "-s", "-C", str(SOURCE), target.name, f"BUILD={unfinished}")
    try:
        said(*command, f"{target.variable}={named}")
    except RuntimeError as error:
        raise HostCannotError(f"counted guest: {error}") from error
    unfinished.rename(made)
