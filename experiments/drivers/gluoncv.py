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

from .gluoncv_inside import NAME
from .options import one_of, options_of, refusal
from .served import BESIDE, BURSTING, background_of, beside
from .services import found

ENVIRONMENT = "DASEC_GLUONCV"
PACKAGES = ("mxnet==1.9.1", "gluoncv==0.10.5.post0", "numpy<1.24")
"""The last releases (2022). mxnet uses numpy.bool, gone in numpy 1.24; older ones end at Python 3.11."""

PYTHON = "python3.11"
NO_PYTHON = f"{PYTHON}: not found, and numpy < 1.24, which mxnet needs, has no wheels for a newer one"
INSIDE = Path(__file__).with_name("gluoncv_inside.py")

EXPORTED_MODULE = "experiments.drivers.gluoncv_exported"

MODELS: Mapping[str, str] = {
    "image-classification": "mobilenet1.0",
    "action-recognition": "i3d_resnet50_v1_kinetics400",
}
"""Those that need no download with pretrained=False; others of GluonCV do (drivers/README.md)."""

IN_GUESTS = ("cifar_resnet20_v1",)
"""Exported for counted guests (experiments/services/Makefile): others would take hours there."""

WAIT_POLICY = "wait-policy"
POLICIES = ("", "active", "passive")
"""OpenMP's: whether a thread spins before it sleeps. Empty: as OpenMP decides itself."""


def environment_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Where the environment is, or would be."""
    named = environment.get(ENVIRONMENT)
    cache = environment.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(named) if named else Path(cache) / "dasec" / "gluoncv"


def missing_environment() -> str | None:
    """Why there is none, and what makes one."""
    folder = environment_folder()
    if os.access(folder / "bin" / "python", os.X_OK):
        return None
    made = "`python -m experiments.drivers gluoncv` makes one"
    return f"{folder}: no environment: {made if shutil.which(PYTHON) else NO_PYTHON}"


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
    package: str = "libgomp1"
    """The one library of a machine's that MXNet does not bring along."""
    program: str = "dasec-gluoncv"
    """Of counted guests: a command beside the exported models."""
    vcpu_names: tuple[str, ...] = (NAME, BURSTING)
    is_exact: bool = False
    """MXNet has threads that wait for work of other kinds."""

    def missing(self) -> str | None:
        folder = environment_folder()
        if reason := missing_environment():
            return reason
        done = subprocess.run(
            [str(folder / "bin" / "python"), "-c", "import mxnet, gluoncv"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        return None if done.returncode == 0 else f"{folder}: mxnet: {last_words(done.stderr)}"

    def vcpus(self, order: WorkOrder) -> int:
        return order.threads + background_of(order, self._options(order))

    def critical(self, order: WorkOrder) -> tuple[str, ...]:
        """All its threads have one name, so there is an oracle only where others burst beside them."""
        return (NAME,) if background_of(order, self._options(order)) else ()

    def start(self, order: WorkOrder, place: Place) -> ToolRun:
        options = self._options(order)
        if order.rate_per_s <= 0:
            raise refusal(order, "rate", "must be above 0")
        order.folder.mkdir(parents=True)
        told = {
            "model": options["model"],
            "rate": order.rate_per_s,
            "seed": order.seed,
            "warmup": order.warmup_s,
            "seconds": order.seconds,
            "folder": order.folder,
        }
        words = [word for name, value in told.items() for word in (f"--{name}", str(value))]
        policy = options[WAIT_POLICY]
        threads = (f"OMP_NUM_THREADS={order.threads}", *([f"OMP_WAIT_POLICY={policy}"] if policy else []))
        command = ("env", *threads, *self._python(), *words)
        tool = Child.start(order.name, place, command, order.folder / "log")
        try:
            return ToolRun(order, tool, beside=beside(order, place, options))
        except BaseException:
            tool.kill()
            raise

    def _python(self) -> tuple[str, ...]:
        """What infers: GluonCV where its environment is, in guests what was exported."""
        if missing_environment() and (program := found(self.program)):
            return (str(program), sys.executable, "-m", EXPORTED_MODULE)
        # -P: else this folder comes first, whose gluoncv.py is not the library.
        return (str(environment_folder() / "bin" / "python"), "-P", str(INSIDE))

    def _options(self, order: WorkOrder) -> dict[str, str]:
        options = options_of(order, {"model": self.model, WAIT_POLICY: "", **BESIDE})
        one_of(order, WAIT_POLICY, options[WAIT_POLICY], POLICIES)
        return options


IMAGES = GluonCV("gluoncv-image-classification", MODELS["image-classification"])
"""In counted guests, too."""

GLUONCV = (IMAGES, GluonCV("gluoncv-action-recognition", MODELS["action-recognition"]))
