"""A QEMU whose instruction counting boots several CPUs: this machine's own, or the one from backports.

QEMU 7.2 (Debian 12) hangs with `-icount` and two CPUs while the guest brings up the second. A newer
one is unpacked beside it into a cache and run from there; nothing is installed, and apt's own
configuration stays as it is. docs/measurements.md#the-deterministic-guest has the versions tried.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from guests.boot import one_at_a_time

NAME = "qemu-system-x86_64"
CACHE = Path("/var/cache/dasec-guest")
PACKAGES = ("qemu-system-x86", "qemu-system-common", "qemu-system-data")
FIRST_GOOD_MAJOR = 10
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
FIRMWARE = Path("/usr/share/seabios")


class QemuMissingError(RuntimeError):
    """No usable QEMU, in one line that says how to get one."""


@dataclass(frozen=True, slots=True)
class Qemu:
    """A binary, and where it finds its firmware if that is not where it was built for."""

    binary: Path
    data: tuple[Path, ...] = ()

    def command(self, *arguments: str) -> list[str]:
        """The command line that runs it with these arguments."""
        return [str(self.binary), *(part for path in self.data for part in ("-L", str(path))), *arguments]


def why_not_installed() -> str | None:
    """Why this machine has no QEMU of its own, in one line; None: it has."""
    return f"{NAME}: not found: install qemu-system-x86" if shutil.which(NAME) is None else None


def counting_qemu() -> Qemu:
    """The QEMU for deterministic guests; from backports, once, where the installed one is too old."""
    installed = shutil.which(NAME)
    if installed is not None and major_version(Qemu(Path(installed))) >= FIRST_GOOD_MAJOR:
        return Qemu(Path(installed))
    codename = _codename()
    kept = kept_backport(codename)
    if not (kept / "complete").exists():
        with one_at_a_time(CACHE):
            if not (kept / "complete").exists():
                _unpack_backport(codename, kept)
    share = kept / "usr/share"
    return Qemu(kept / "usr/bin" / NAME, (share / "qemu", FIRMWARE, share / "seabios"))


def kept_backport(codename: str) -> Path:
    """Where the backport lies that this recipe asks for; clones that ask for the same share it."""
    recipe = repr((codename, PACKAGES, FIRST_GOOD_MAJOR))
    return CACHE / f"qemu-{hashlib.sha256(recipe.encode()).hexdigest()[:16]}"


def major_version(qemu: Qemu) -> int:
    """The first number of what `--version` says."""
    said = _run(qemu.command("--version"))
    found = re.search(r"version (\d+)\.", said)
    if found is None:
        raise QemuMissingError(f"{qemu.binary} --version says {said.strip()!r}: no version in it")
    return int(found.group(1))


def backports_line(targets: str, codename: str, of: str | None = None) -> str:
    """The source line of the backports of `of`, by default of `codename` itself, in the archive where
    `codename` is from, from lines `URI|release|component`."""
    for line in targets.splitlines():
        uri, release, component = line.split("|")
        if (release, component) == (codename, "main"):
            return f"deb [signed-by={KEYRING}] {uri} {of or codename}-backports main"
    raise QemuMissingError(
        f"apt has no archive for {codename} main, so none for its backports:"
        f" install QEMU {FIRST_GOOD_MAJOR} or newer by hand"
    )


def _codename() -> str:
    release = Path("/etc/os-release").read_text(encoding="utf-8")
    found = re.search(r"^VERSION_CODENAME=\"?(\w+)", release, re.MULTILINE)
    if found is None:
        raise QemuMissingError("/etc/os-release names no VERSION_CODENAME: install QEMU 10 or newer by hand")
    return found.group(1)


def backports(of: str | None = None) -> str:
    """The source line of the backports of a release of Debian, by default of this machine's."""
    targets = _run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)|$(RELEASE)|$(COMPONENT)", "Created-By: Packages"]
    )
    return backports_line(targets, _codename(), of)


def _unpack_backport(codename: str, kept: Path) -> None:
    line = backports()
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="unpacking-") as scratch:
        root = Path(scratch)
        apt = private_apt(root / "apt", line)
        _run([*apt, "update"])
        downloads = root / "downloads"
        downloads.mkdir()
        _run([*apt, "download", *(f"{name}/{codename}-backports" for name in PACKAGES)], cwd=downloads)
        tree = root / "tree"
        for archive in sorted(downloads.glob("*.deb")):
            _run(["dpkg", "-x", str(archive), str(tree)])
        _refuse_old(Qemu(tree / "usr/bin" / NAME))
        (tree / "complete").touch()
        shutil.rmtree(kept, ignore_errors=True)
        tree.rename(kept)


def private_apt(folder: Path, line: str) -> list[str]:
    """`apt-get` that knows this one source line and keeps its state below `folder`."""
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    sources = folder / "sources.list"
    sources.write_text(line + "\n", encoding="utf-8")
    options = {
        "Dir::Etc::SourceList": sources,
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State::Lists": folder / "lists",
        "Dir::Cache": folder / "cache",
        "APT::Sandbox::User": "root",  # its own user cannot enter our folder
    }
    return ["apt-get", "-q", *(part for key, value in options.items() for part in ("-o", f"{key}={value}"))]


def _refuse_old(qemu: Qemu) -> None:
    if (major := major_version(qemu)) < FIRST_GOOD_MAJOR:
        raise QemuMissingError(f"backports have QEMU {major}: install {FIRST_GOOD_MAJOR} or newer by hand")


def _run(command: Sequence[str], cwd: Path | None = None) -> str:
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    except OSError as error:
        raise QemuMissingError(f"cannot run {command[0]}: {error.strerror}") from error
    if done.returncode != 0:
        why = (done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}").splitlines()[
            -1
        ]
        raise QemuMissingError(f"{Path(command[0]).name} {command[-1]}: {why}")
    return done.stdout
