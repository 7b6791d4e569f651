"""systemd's own tools find nothing wrong with the unit, and little that it could do beyond its job."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY, refuse

UNIT = REPOSITORY / "packaging/systemd/dasec.service"
MOST_EXPOSED = 3.0
FROM_254_ON = {"RestartSteps", "RestartMaxDelaySec"}
"""Keys that Debian 12's systemd does not know, and says so."""


def analyze(*arguments: str | Path) -> str:
    if shutil.which("systemd-analyze") is None:
        refuse("needs systemd-analyze")
    done = subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_systemd_has_nothing_to_say_about_the_unit(tmp_path: Path) -> None:
    """Of a copy whose command exists."""
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text(encoding="utf-8").replace("/usr/bin/dasec", "/bin/true"))
    said = analyze("verify", "--man=no", "--recursive-errors=no", unit).splitlines()
    ours = [line for line in said if UNIT.name in line]
    assert [line for line in ours if not any(key in line for key in FROM_254_ON)] == []


def test_the_unit_can_do_little_beyond_its_job() -> None:
    said = analyze("security", "--offline=yes", "--no-pager", UNIT)
    level = re.search(r"Overall exposure level for dasec.service: ([0-9.]+)", said)
    assert level is not None, said
    assert float(level[1]) <= MOST_EXPOSED, said


@pytest.mark.parametrize(
    "line",
    [
        "Type=notify",
        "RuntimeDirectoryPreserve=yes",
        "ExecStopPost=/usr/bin/dasec restore",
        "RestartPreventExitStatus=2 3",
    ],
)
def test_what_safety_rests_on_is_in_the_unit(line: str) -> None:
    assert line in UNIT.read_text(encoding="utf-8").splitlines()
