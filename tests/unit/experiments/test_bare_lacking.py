"""What this machine lacks for guests of our own, and being told to stop before there are any."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from dasec.errors import Refusal
from experiments.run.family import Ways
from experiments.studies.bare import guests as family
from experiments.studies.bare.wish import Wish
from guests.bare import built
from guests.bare.machine import running
from guests.bare.words import Accelerator
from guests.built import HostCannotError

NO_QEMU = "qemu-system-x86_64: not found: install qemu-system-x86"


def test_without_qemu_a_check_says_so_and_a_guest_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert NO_QEMU in family.check({"bare": True}, tmp_path / "quick.toml", Ways())
    domains = family.check({"bare": True, "libvirt": True}, tmp_path / "quick.toml", Ways())
    assert len([line for line in domains if "qemu" in line]) == 1
    with pytest.raises(HostCannotError, match=NO_QEMU), running(Accelerator.TCG, 1):
        pass


def test_without_a_compiler_a_check_names_the_packages_unless_the_guest_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "bare.elf"
    monkeypatch.setattr(built, "_kept", lambda: file)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert built.why_not_built() == "missing on this machine: binutils gcc make: install them"
    file.touch()
    assert built.why_not_built() is None


def test_who_is_told_to_stop_while_it_tries_kvm_says_so_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def tried() -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    monkeypatch.setattr(family, "_lacking", lambda _: iter(()))
    monkeypatch.setattr(family, "bare_guest", lambda: None)
    monkeypatch.setattr(family, "why_not_kvm", tried)
    try:
        with pytest.raises(Refusal, match="interrupted: everything it had started is gone"):
            family.accelerator_for(Wish())
    finally:
        signal.signal(signal.SIGTERM, before)
