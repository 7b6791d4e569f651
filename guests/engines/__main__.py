"""A command beside a real Docker of its own: from Debian's packages, not installed.

    python -m guests.engines COMMAND ...

As root. The command sees that dockerd, and this machine's files, processes and cgroups; its network has
nothing but a loopback. Containers and dockerd are gone when it ends.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from guests.engines import packages
from guests.engines.docker import Docker
from guests.engines.place import Place

USAGE, HOST = 2, 3
"""Exit statuses of our own, as those of all commands of this repository."""


def beside_docker(command: Sequence[str], log: Path) -> int:
    """Its exit status. Who asks it to stop does so by us, or by the terminal, which tells it itself."""
    place = Place(log)
    try:
        Docker(place)
        running = subprocess.Popen(place.inside("env", "-C", str(Path.cwd()), *command))

        def tell(number: int, frame: FrameType | None) -> None:  # noqa: ARG001  # the interface of handlers
            if number != signal.SIGINT:
                running.send_signal(number)

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, tell)
        return running.wait()
    finally:
        place.close()


def main(command: Sequence[str]) -> int:
    """Says what is wrong in one line."""
    if not command or command[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if command else USAGE
    if missing := packages.missing():
        print(f"guests.engines: {', '.join(missing)}: not found: install them", file=sys.stderr)
        return HOST
    with tempfile.TemporaryDirectory(prefix="dasec-engines-") as folder:
        return beside_docker(command, Path(folder) / "log")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
