"""Programs for a guest's root, without fetching any."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from experiments.drivers.gluoncv import IMAGES, IN_GUESTS
from experiments.drivers.kvm import Kvm
from experiments.drivers.postgres import Postgres
from experiments.drivers.rocksdb import RocksDb
from experiments.drivers.servers import SERVERS, TAILBENCH
from experiments.drivers.services import OWN_SERVICES
from experiments.drivers.tailbench import GATE
from experiments.places.counted import compiled as compiling
from experiments.places.counted.compiled import TARGETS, compiled
from experiments.places.counted.programs import RUNTIMES, Programs
from guests.built import HostCannotError
from guests.packages import lead_inside


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Packages with a compiler that writes down how it was called."""
    go = tmp_path / "root/usr/bin/go"
    go.parent.mkdir(parents=True)
    go.write_text('#!/bin/sh\n[ "$1" = build ] && echo "$@" >"$4"\n')
    go.chmod(0o755)
    return tmp_path / "root"


def test_a_service_is_compiled_once_by_the_compiler_of_the_packages(root: Path, tmp_path: Path) -> None:
    made = compiled("dasec-go", root, tmp_path / "cache")
    assert made.read_text().startswith("build -trimpath -o ")
    made.write_text("kept")
    assert compiled("dasec-go", root, tmp_path / "cache").read_text() == "kept"


def test_another_compiler_or_source_compiles_anew(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = compiled("dasec-go", root, tmp_path / "cache")
    with (root / "usr/bin/go").open("a") as file:
        file.write("# newer\n")
    second = compiled("dasec-go", root, tmp_path / "cache")
    source = tmp_path / "source"
    source.mkdir()
    for path in compiling.SOURCE.iterdir():
        if path.is_file():
            (source / path.name).write_bytes(path.read_bytes() + b"\n")
    monkeypatch.setattr(compiling, "SOURCE", source)
    assert len({first, second, compiled("dasec-go", root, tmp_path / "cache")}) == 3


def test_a_virtual_machine_is_put_together_once_of_qemu_its_firmware_and_the_guest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    qemu, firmware = tmp_path / "root/usr/bin/qemu-system-x86_64", tmp_path / "root/usr/share/qemu"
    for file in (qemu, firmware / "pvh.bin", firmware / "qboot.rom"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"the packages' {file.name}")
    made = compiled("dasec-kvm", tmp_path / "root", tmp_path / "cache")
    home = made.resolve().parents[1]
    assert {
        str(file.relative_to(home)): file.read_text()
        for file in home.rglob("*")
        if file.is_file() and file.suffix != ".elf" and file.name != "start"
    } == {
        "bin/qemu-system-x86_64": "the packages' qemu-system-x86_64",
        "share/qemu/pvh.bin": "the packages' pvh.bin",
        "share/qemu/qboot.rom": "the packages' qboot.rom",
    }
    assert (home / "bare.elf").read_bytes().startswith(b"\x7fELF")
    assert compiled("dasec-kvm", tmp_path / "root", tmp_path / "cache") == made
    another = replace(TARGETS["dasec-kvm"], also=lambda: "another guest")
    monkeypatch.setattr(compiling, "TARGETS", {**TARGETS, "dasec-kvm": another})
    assert compiled("dasec-kvm", tmp_path / "root", tmp_path / "cache") != made


def test_a_compiler_that_fails_is_one_line_with_its_words(root: Path, tmp_path: Path) -> None:
    (root / "usr/bin/go").write_text("#!/bin/sh\necho 'service.go: too new' >&2\nexit 2\n")
    with pytest.raises(HostCannotError, match="too new"):
        compiled("dasec-go", root, tmp_path / "cache")


def test_gluoncvs_models_are_exported_once_by_its_environment(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Python that writes down what it is told in place of the program."""
    home = tmp_path / "gluoncv"
    for name in ("bin/python", "lib/python3.11/site-packages/mxnet/libmxnet.so"):
        (home / name).parent.mkdir(parents=True)
        (home / name).write_text('#!/bin/sh\nmkdir -p "$3/bin" && echo "$@" >"$3/bin/start"\n')
        (home / name).chmod(0o755)
    monkeypatch.setenv("DASEC_GLUONCV", str(home))
    made = compiled("dasec-gluoncv", root, tmp_path / "cache")
    assert made.read_text().startswith("-P export.py ")
    assert made.read_text().endswith(f" {' '.join(IN_GUESTS)}\n")
    (home / "bin/python").unlink()
    assert compiled("dasec-gluoncv", root, tmp_path / "cache") == made


def test_without_gluoncvs_environment_a_guest_says_what_makes_it(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DASEC_GLUONCV", str(tmp_path / "none"))
    monkeypatch.setenv("PATH", str(root / "usr/bin"))
    (root / "usr/bin/python3.11").touch(mode=0o755)
    with pytest.raises(HostCannotError) as refused:
        compiled("dasec-gluoncv", root, tmp_path / "cache")
    assert str(refused.value) == (
        f"counted guest: gluoncv: {tmp_path / 'none'}: no environment: "
        "`python -m experiments.drivers gluoncv` makes one"
    )


def test_what_is_made_of_our_source_is_what_our_drivers_start() -> None:
    ours = (Postgres(), RocksDb(), Kvm(), *OWN_SERVICES, IMAGES)
    assert set(TARGETS) == {GATE, *(one.program for one in ours)}
    assert {one.program for one in TAILBENCH} == {GATE}
    assert set(TARGETS) <= {server.program for server in SERVERS.values()}


def test_what_is_preloaded_is_compiled_and_nobody_starts_it(tmp_path: Path) -> None:
    gate = compiled(GATE, tmp_path / "root", tmp_path / "cache")
    tree = tmp_path / "tree"
    (tree / "bin").mkdir(parents=True)
    Programs({GATE: gate}, tmp_path / "root").copy(tree, "start PROGRAM")
    assert (tree / "programs" / GATE).read_bytes() == gate.read_bytes()
    assert list((tree / "bin").iterdir()) == []


def test_a_runtime_goes_into_the_guest_whole_and_is_started_where_it_lies(tmp_path: Path) -> None:
    home = tmp_path / "runtime"
    for name in ("bin/java", "lib/modules"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(name)
    (tmp_path / RUNTIMES[0]).symlink_to("runtime/bin/java")
    tree = tmp_path / "tree"
    (tree / "bin").mkdir(parents=True)
    programs = Programs({RUNTIMES[0]: tmp_path / RUNTIMES[0]}, tmp_path / "root")
    programs.copy(tree, "start PROGRAM")
    assert (tree / "programs/dasec-java/lib/modules").read_text() == "lib/modules"
    assert (tree / "bin/dasec-java").read_text() == "start /programs/dasec-java/bin/java"
    before = list(programs.contents())
    (home / "lib/modules").write_text("others")
    assert list(programs.contents()) != before


def test_links_to_etc_lead_to_what_the_packages_have_there(tmp_path: Path) -> None:
    (tmp_path / "etc/java").mkdir(parents=True)
    (tmp_path / "etc/java/jvm.cfg").write_text("ours")
    (tmp_path / "usr/lib").mkdir(parents=True)
    own, foreign = tmp_path / "usr/lib/jvm.cfg", tmp_path / "usr/lib/cacerts"
    own.symlink_to("/etc/java/jvm.cfg")
    foreign.symlink_to("/etc/ssl/cacerts")
    lead_inside(tmp_path)
    assert own.read_text() == "ours"
    assert str(foreign.readlink()) == "/etc/ssl/cacerts"
