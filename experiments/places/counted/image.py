"""The guest's root: busybox, Python, the daemon and its libraries, the load tool, what measures.

A deterministic guest cannot read files of its host while it runs: when they arrive depends on the
host. So all is packed into an initramfs, compiled, from what this environment has installed.
"""

from __future__ import annotations

import compileall
import hashlib
import importlib.metadata
import py_compile
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dasec.bpf.libbpf import LIBRARY
from guests.boot import EXIT_MARK, pack_initramfs
from guests.built import HostCannotError
from guests.throw_away import copy_modules

from ...drivers.tailbench import GATE, ROOT
from .installed import INSIDE
from .programs import FOLDER, Programs, needed_by

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[2]
PLANNED = (
    "arms",
    "blocks",
    "cells",
    "contests",
    "hosts",
    "loads",
    "oracle",
    "order",
    "servers",
    "shapes",
    "terms",
    "testbed",
)
DRIVERS = (
    *("beside", "gluoncv", "gluoncv_exported", "gluoncv_inside", "keeping", "kvm", "lats", "matrixmul"),
    *("memcached", "nginx", "options", "postgres", "program", "redis", "rocksdb", "served", "servers"),
    *("services", "sysbench", "tailbench", "tailbench_apps", "tailbench_run"),
)
FILES = (
    *(REPOSITORY / f"experiments/plan/{name}.py" for name in (*PLANNED, "variants", "word")),
    *(REPOSITORY / f"experiments/drivers/{name}.py" for name in DRIVERS),
    *(HERE / f"{name}.py" for name in ("cpus", "domains", "inside", "speed")),
    *(
        REPOSITORY / f"guests/{name}.py"
        for name in ("__init__", "bare/__init__", "bare/client", "bare/words")
    ),
)
"""What modules in guests import of ours beside the daemon."""

ROOTS = ("dasec", "hdrhistogram")
"""The daemon, and what turns the load tool's samples into figures."""

TASK = "task"
"""The word on the kernel's command line that says what to do: one argument for the module."""

NOT_RUN = ("pbr", "setuptools")
"""Asked for by hdrhistogram, for its installation only."""

UNUSED = (
    *("test", "tests", "idlelib", "tkinter", "lib2to3", "ensurepip", "site-packages", "turtledemo"),
    *("distutils", "pydoc_data", "config-*", "__pycache__", "_tkinter*", "_sqlite3*", "_test*", "sqlite3"),
)
"""Of the standard library: large, and nothing of ours imports it. A large archive costs at each boot."""

UTILITIES = ("chrt", "setpriv", "env")
"""Debian's busybox has no chrt, a setpriv that changes no user, and an env that changes no folder."""

BOOT = REPOSITORY / "guests/boot.py"
LOAD_SOURCE = REPOSITORY / "experiments/load"
SITE = "usr/lib/site"
NOT_LINKED = (".ko", ".elf")
INIT = f"""#!/bin/busybox sh
busybox mkdir -p /proc /sys /dev /tmp /run
busybox mount -t proc proc /proc
busybox mount -t sysfs sys /sys
busybox mount -t devtmpfs dev /dev
busybox mount -t tmpfs tmpfs /tmp
busybox mount -t tmpfs tmpfs /run
busybox mount -t cgroup2 cgroup2 /sys/fs/cgroup
busybox ip link set lo up
for module in /modules/*; do
    [ ! -e $module ] || busybox insmod $module || busybox echo "$module: not loaded"
done
export PATH=/bin HOME=/tmp PYTHONHOME=PREFIX PYTHONPATH=/{SITE} PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1
export DASEC_LOAD=/bin/load DASEC_GATE=/{FOLDER}/{GATE} {ROOT}=/{INSIDE}
PYTHON -m MODULE ${TASK}
busybox echo "{EXIT_MARK}$?"
busybox reboot -f
"""

SEATED = """#!/bin/busybox sh
exec /bin/busybox taskset $(/bin/busybox cat /run/service-cpus) PROGRAM "$@"
"""
"""Services keep to their own cores from their first instruction on."""

LOAD = """#!/bin/busybox sh
seat=/run/service-cpus
first=
case $1 in memcached | redis | http | postgres | bare) seat=/run/client-cpus first="/bin/chrt -f 1" ;; esac
exec $first /bin/busybox taskset $(/bin/busybox cat $seat) /bin/dasec-load "$@"
"""
"""The load tool serves there, and asks from where it is measured. Who asks goes before whoever measures or
decides there, under any scheduler: what it waits for its CPU would be taken for the service's latency. On our
own scheduler that was 6.5 of memcached's 6.9 ms at p99 (docs/decisions/0082-who-asks-first.md)."""


@dataclass(frozen=True, slots=True)
class Inside:
    """What runs in the guest: a module that imports no more of ours than FILES, and programs for RIVALS."""

    module: str
    rivals: tuple[Path, ...] = ()
    programs: Programs | None = None
    """Of Debian."""
    imports: tuple[str, ...] = ()
    """Modules that it has of its own beside FILES."""
    options: tuple[str, Path] | None = None
    """The kernel's release and the file with its options, where libbpf looks if a program asks for some."""
    modules: tuple[Path, ...] = ()
    """Of the kernel, in the order in which they are loaded."""

    @property
    def files(self) -> tuple[Path, ...]:
        """Its source, and theirs."""
        own = (f"{name.replace('.', '/')}.py" for name in (self.module, *self.imports))
        return (*FILES, *(REPOSITORY / path for path in own))


def build_id(inside: Inside) -> str:
    """What a guest is made of that is ours: another daemon, load tool or machine is another guest."""
    sources = [path for path in (REPOSITORY / "daemon").rglob("*") if path.suffix in (".py", ".o")]
    sources += [LOAD_SOURCE / "Makefile", *(LOAD_SOURCE / "src").iterdir()]
    sources += {*inside.files, *HERE.glob("*.py"), *HERE.glob("*.c"), BOOT}
    digest = hashlib.sha256(sys.version.encode())
    for path in sorted(sources):
        digest.update(f"{path.relative_to(REPOSITORY)} {path.stat().st_size} ".encode() + path.read_bytes())
    for path in inside.rivals:
        digest.update(path.name.encode() + path.read_bytes())
    if inside.options:
        digest.update(inside.options[0].encode() + inside.options[1].read_bytes())
    for path in inside.modules:
        digest.update(path.name.encode() + path.read_bytes())
    for content in inside.programs.contents() if inside.programs else ():
        digest.update(content)
    return digest.hexdigest()[:16]


def pack(scratch: Path, inside: Inside) -> Path:
    """The archive of this build, below `scratch`; as it is if it is there: all guests have the same one."""
    tree = scratch / "root"
    if (archive := scratch / f"guest-{build_id(inside)}.cpio").exists():
        return archive
    shutil.rmtree(tree, ignore_errors=True)
    python = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    _copy_standard_library(tree)
    _copy_libraries(tree / SITE)
    shutil.copytree(
        REPOSITORY / "daemon", tree / SITE / "dasec", ignore=shutil.ignore_patterns("__pycache__")
    )
    for source in inside.files:
        target = tree / SITE / source.relative_to(REPOSITORY)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    _compile(tree)
    _copy_program(tree, python)
    (tree / "bin").mkdir(exist_ok=True)
    shutil.copy(shutil.which("busybox") or "/bin/busybox", tree / "bin/busybox")
    (tree / "bin/sh").symlink_to("busybox")
    for name in UTILITIES:
        shutil.copy(shutil.which(name) or f"/usr/bin/{name}", tree / "bin" / name)
    make = ["make", "-s", "-C", str(LOAD_SOURCE), f"BUILD={scratch.resolve() / 'load'}", "COUNTED=1"]
    subprocess.run(make, check=True)
    shutil.copy(scratch / "load/dasec-load", tree / "bin/dasec-load")
    (tree / "bin/load").write_text(LOAD, encoding="utf-8")
    (tree / "bin/load").chmod(0o755)
    for program in inside.rivals:
        (tree / "rivals").mkdir(exist_ok=True)
        shutil.copy(program, tree / "rivals")
    if inside.options:
        (tree / "boot").mkdir()
        shutil.copy(inside.options[1], tree / f"boot/config-{inside.options[0]}")
    if inside.modules:
        copy_modules(inside.modules, tree / "modules")
    _copy_library(tree, LIBRARY)
    if inside.programs:
        inside.programs.copy(tree, SEATED)
    _copy_shared_objects(tree, inside.programs)
    init = INIT.replace("PREFIX", sys.base_prefix).replace("PYTHON ", f"{python.resolve()} ")
    init = init.replace("MODULE", inside.module)
    packed = pack_initramfs(tree, init).rename(archive)
    shutil.rmtree(tree)
    return packed


def _copy_standard_library(tree: Path) -> None:
    library = Path(sysconfig.get_path("stdlib"))
    target = tree / library.relative_to("/")
    shutil.copytree(library, target, ignore=shutil.ignore_patterns(*UNUSED), symlinks=True)


def _copy_libraries(site: Path) -> None:
    """The installed files of our requirements and of theirs, without the programs."""
    for name in sorted(_closure(ROOTS)):
        distribution = importlib.metadata.distribution(name)
        for file in distribution.files or ():
            source = Path(str(distribution.locate_file(file)))
            if name == "dasec" and not file.parts[0].endswith("-info"):
                continue
            if ".." in file.parts or "__pycache__" in file.parts or not source.is_file():
                continue
            (site / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, site / file)


def _closure(names: Iterable[str]) -> set[str]:
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in found or name in NOT_RUN:
            continue
        found.add(name)
        for requirement in importlib.metadata.requires(name) or ():
            if ";" not in requirement:
                waiting.append(re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0])
    return found


def _compile(tree: Path) -> None:
    """Compiled once here, in the place of the source; where "here" is must not be in it."""
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    compileall.compile_dir(
        tree, quiet=2, legacy=True, invalidation_mode=mode, maxlevels=20, stripdir=tree, prependdir="/"
    )
    for source in tree.rglob("*.py"):
        if source.with_suffix(".pyc").exists():
            source.unlink()


def _copy_program(tree: Path, program: Path) -> None:
    target = tree / program.resolve().relative_to("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(program.resolve(), target)


def _copy_library(tree: Path, name: str) -> None:
    """By the name under which programs ask for it, where the dynamic linker looks."""
    listing = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    found = re.search(rf"^\s{re.escape(name)} .*=> (\S+)$", listing, re.MULTILINE)
    if found is None:
        raise HostCannotError(f"counted guest: {name}: not found: install what provides it")
    source = Path(found.group(1))
    target = tree / source.relative_to("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source.resolve(), target)


def _copy_shared_objects(tree: Path, unpacked: Programs | None) -> None:
    """Whatever the dynamic linker would load for the programs and extension modules in the tree."""
    programs = [path for path in tree.rglob("*") if path.is_file() and _is_linked(path)]
    for needed in sorted(set(_needed(programs, unpacked))):
        target = tree / (unpacked.inside(needed) if unpacked else needed.relative_to("/"))
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(needed.resolve(), target)
            programs.append(target)
    subprocess.run(["strip", "--strip-unneeded", *map(str, programs)], stderr=subprocess.DEVNULL, check=False)


def _is_linked(path: Path) -> bool:
    """Not so the kernel's modules, and what is a kernel itself."""
    with path.open("rb") as stream:
        return stream.read(4) == b"\x7fELF" and path.suffix not in NOT_LINKED


def _needed(programs: Iterable[Path], unpacked: Programs | None) -> Iterator[Path]:
    environment = unpacked.environment if unpacked else None
    for program in programs:
        for path in re.findall(r"(/\S+) \(0x", needed_by(program, environment)):
            yield Path(path)
