"""The fleet's study by the workers of a real Dask cluster. Dask has an environment of its own: the project
needs none of it, so this is for the long run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from dasec.lab.kit.process import free_port
from tests.conftest import REPOSITORY

pytestmark = pytest.mark.slow

DASK = "distributed==2025.11.0"
WORKERS = 2
LIMIT_S = "600"


@pytest.fixture
def dask(tmp_path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """The scheduler of a cluster on this machine, and what is in the environment of who asks it."""
    folder = tmp_path / "dask"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--target"]
    subprocess.run([*pip, str(folder), DASK], check=True)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(folder), str(REPOSITORY)))}
    url = f"tcp://127.0.0.1:{free_port()}"
    commands = [["scheduler", "--host", url, "--no-dashboard"]]
    commands += [["worker", url, "--nthreads", "1", "--no-dashboard", "--death-timeout", LIMIT_S]] * WORKERS
    with ExitStack() as stack:
        for number, words in enumerate(commands):
            log = stack.enter_context((tmp_path / f"log-{number}").open("wb"))
            command = [sys.executable, "-m", "dask", *words]
            process = subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=log, stderr=log)
            stack.callback(process.wait)
            stack.callback(process.terminate)
        yield url, environment


def test_a_cluster_finds_what_one_machine_finds(dask: tuple[str, dict[str, str]], tmp_path: Path) -> None:
    url, environment = dask
    command = [sys.executable, "-m", "experiments.studies.fleet", "--hosts", "20", "--seeds", "1", "--out"]
    for place, words in (("here", []), ("there", ["--dask", url])):
        subprocess.run([*command, str(tmp_path / place), *words], env=environment, check=True, cwd=REPOSITORY)
    for name in ("held.csv", "held_moving.csv", "moved.csv", "made.csv"):
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes(), name
