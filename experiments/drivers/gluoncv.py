"""GluonCV's image classification and action recognition, in an environment of its own.

Nothing is downloaded unless `python -m experiments.drivers gluoncv` is asked to make that
environment. Models have random weights: what is computed does not depend on them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dasec.errors import ExitStatus, Refusal
from dasec.lab.kit.driver import Place, WorkKind, WorkOrder
from dasec.lab.kit.load_driver import ToolRun
from dasec.lab.kit.process import Child

from .options import options_of, refusal

ENVIRONMENT = "DASEC_GLUONCV"
PACKAGES = ("mxnet==1.9.1", "gluoncv==0.10.5.post0", "numpy<1.24")
"""The last releases (2022). mxnet uses numpy.bool, gone in numpy 1.24; older ones end at Python 3.11."""

PYTHON = "python3.11"
NO_PYTHON = f"{PYTHON}: not found, and numpy < 1.24, which mxnet needs, has no wheels for a newer one"
INSIDE = Path(__file__).with_name("gluoncv_inside.py")

MODELS: Mapping[str, str] = {
    "image-classification": "mobilenet1.0",
    "action-recognition": "i3d_resnet50_v1_kinetics400",
}
"""Those that need no download with pretrained=False; others of GluonCV do (drivers/README.md)."""


def environment_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Where the environment is, or would be."""
    named = environment.get(ENVIRONMENT)
    cache = environment.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(named) if named else Path(cache) / "dasec" / "gluoncv"


def make_environment(folder: Path) -> None:
    """Downloads and installs, about 0.8 GB. Refusal with the installer's last line if that fails."""
    python = shutil.which(PYTHON)
    if python is None:
        raise Refusal(ExitStatus.HOST, f"gluoncv: {NO_PYTHON}")
    for command in (
        [python, "-m", "venv", "--clear", str(folder)],
        [str(folder / "bin" / "python"), "-m", "pip", "install", *PACKAGES],
    ):
        done = subprocess.run(command, stdout=sys.stderr, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            raise Refusal(ExitStatus.HOST, f"gluoncv: {' '.join(command)}: {last_words(done.stderr)}")


def last_words(said: str) -> str:
    """The last line that is not empty."""
    lines = [line for line in said.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no message"


@dataclass(frozen=True, slots=True)
class GluonCV:
    """One model; `threads` are those that compute one request together (OpenMP)."""

    name: str
    model: str
    kind: WorkKind = WorkKind.SERVICE

    def missing(self) -> str | None:
        folder = environment_folder()
        python = folder / "bin" / "python"
        if not os.access(python, os.X_OK):
            how = (
                NO_PYTHON
                if shutil.which(PYTHON) is None
                else "`python -m experiments.drivers gluoncv` makes one"
            )
            return f"{folder}: no environment: {how}"
        done = subprocess.run(
            [str(python), "-c", "import mxnet, gluoncv"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        return None if done.returncode == 0 else f"{folder}: mxnet: {last_words(done.stderr)}"

    def vcpus(self, order: WorkOrder) -> int:
        return order.threads

    def critical(self, order: WorkOrder) -> tuple[str, ...]:
        """All its threads have the process's name."""
        return ()

    def start(self, order: WorkOrder, place: Place) -> ToolRun:
        model = options_of(order, {"model": self.model})["model"]
        if order.rate_per_s <= 0:
            raise refusal(order, "rate", "must be above 0")
        order.folder.mkdir(parents=True)
        python = environment_folder() / "bin" / "python"
        told = {
            "model": model,
            "rate": order.rate_per_s,
            "seed": order.seed,
            "warmup": order.warmup_s,
            "seconds": order.seconds,
            "folder": order.folder,
        }
        words = [word for name, value in told.items() for word in (f"--{name}", str(value))]
        threads = ("env", f"OMP_NUM_THREADS={order.threads}")
        # -P: else this folder comes first, whose gluoncv.py is not the library.
        command = (*threads, str(python), "-P", str(INSIDE), *words)
        return ToolRun(order, Child.start(order.name, place, command, order.folder / "log"))
