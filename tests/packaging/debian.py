"""Building the Debian package."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def why_not() -> str | None:
    """Why no package can be built and installed here, or None."""
    if os.geteuid() != 0:
        return "needs root"
    return None if shutil.which("dpkg-deb") else "needs dpkg-deb"


def build(folder: Path) -> Path:
    """The package, built into `folder`."""
    done = subprocess.run(
        [REPOSITORY / "packaging/deb/build", folder], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())
