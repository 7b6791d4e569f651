"""Programs of Debian in PATH, from packages that are unpacked and not installed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from experiments.drivers.servers import SERVERS
from experiments.places.counted.programs import Programs
from guests.built import HostCannotError

from ..conftest import refuse

SCRIPT = '#!/bin/sh\nLD_LIBRARY_PATH={libraries} exec {file} "$@"\n'


def found_in_path(servers: Iterable[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of these drivers, by scripts in a folder that is made for them."""
    drivers = [SERVERS[name] for name in servers]
    try:
        programs = Programs.of({one.program: one.package for one in drivers})
    except HostCannotError as error:
        refuse(str(error))
        raise
    folder.mkdir()
    for name, file in programs.files.items():
        text = SCRIPT.format(libraries=programs.environment.get("LD_LIBRARY_PATH", ""), file=file)
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
