"""Running `dasec` as a user does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from guests.waiting import PATIENCE_S

NOBODY = 65534
REPOSITORY = Path(__file__).resolve().parents[3]


@dataclass(frozen=True, slots=True)
class Answer:
    """How a command ended, and what it said."""

    status: int
    out: str
    errors: list[str]


def dasec(*arguments: str | Path, before: Sequence[str] = ()) -> Answer:
    """Runs `dasec` with these arguments, through the commands in `before` if there are any."""
    environment = {name: value for name, value in os.environ.items() if name != "RUNTIME_DIRECTORY"}
    done = subprocess.run(
        [*before, sys.executable, "-m", "dasec", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
        env=environment,
    )
    return Answer(done.returncode, done.stdout, done.stderr.splitlines())


def configuration(folder: Path, text: str = "", selector: str = "") -> Path:
    """A configuration file for one workload, by default this very process."""
    path = folder / "dasec.toml"
    chosen = selector or f"pids = [{os.getpid()}]"
    path.write_text(f'{text}\n[[workload]]\nname = "a"\n{chosen}\n')
    return path


FAKE = '[host]\nbackend = "fake"\n'


def as_nobody() -> tuple[str, ...]:
    """Put before a command, runs it as nobody (when we are root).

    Interpreter, environment and clone may lie in somebody's private home; then, in a mount
    namespace of the command's own, nothing else of that home is left and these can be entered.
    """
    drop = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    needed = (Path(sys.base_prefix), Path(sys.prefix), REPOSITORY)
    homes = {path: home for path in needed if (home := _private_ancestor(path)) is not None}
    if not homes:
        return drop
    holds = {path: f"/mnt/dasec-{number}" for number, path in enumerate(homes)}
    steps = ["mount -t tmpfs none /mnt"]
    steps += [f"mkdir {hold} && mount --bind {path} {hold}" for path, hold in holds.items()]
    steps += [f"mount -t tmpfs -o mode=755 none {home}" for home in dict.fromkeys(homes.values())]
    steps += [f"mkdir -p {path} && mount --move {hold} {path}" for path, hold in holds.items()]
    return ("unshare", "--mount", "sh", "-ec", "; ".join([*steps, 'exec "$@"']), "sh", *drop)


def _private_ancestor(path: Path) -> Path | None:
    """The outermost folder on the way to `path` that others may not enter."""
    return next((one for one in reversed(path.parents) if not one.stat().st_mode & 0o001), None)
