"""One run of the study of real containers, with a Docker of Debian's packages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from experiments.drivers.nginx import Nginx
from experiments.studies.containers.published import kept
from tests.conftest import refuse, require_host, why_not_engines

from .test_loads import check_nothing_is_left

pytestmark = [pytest.mark.host, pytest.mark.slow]


@pytest.mark.parametrize("arm", ["strict, critical within", "limit, critical with caps"])
def test_a_run_beside_the_daemon_answers_all_requests_and_leaves_nothing(
    arm: str, repository: Path, tmp_path: Path
) -> None:
    require_host()
    if (reason := why_not_engines() or Nginx().missing()) is not None:
        refuse(reason)
    module = ("-m", "experiments.studies.containers", "--out", str(tmp_path / "out"))
    short = ("--arm", arm, "--repetitions", "1", "--seconds", "1", "--warmup", "0.5")
    done = subprocess.run(
        [sys.executable, "-m", "guests.engines", sys.executable, *module, *short],
        capture_output=True,
        text=True,
        check=False,
        cwd=repository,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = kept(tmp_path / "out/runs.jsonl")
    assert found.arm == arm
    assert found.requests > 20
    assert found.unfinished == 0
    assert min(found.background_cpus, found.batch_cpus) > 0
    check_nothing_is_left()
