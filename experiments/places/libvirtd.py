"""A libvirtd of an experiment's own."""

from __future__ import annotations

from pathlib import Path

from dasec.lab.kit.needs import unable
from guests.built import HostCannotError
from guests.libvirtd import Libvirtd


def own_libvirtd(folder: Path) -> Libvirtd:
    """That answers; what it says goes into this folder. Refusal where there can be none."""
    try:
        return Libvirtd(folder / "libvirtd.log")
    except HostCannotError as cannot:
        raise unable(str(cannot)) from cannot
