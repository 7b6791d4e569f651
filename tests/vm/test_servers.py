"""Debian's servers in a counted guest: each of them answers all requests there, and its clients take nothing
of the services' CPUs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.drivers.servers import INSTALLED, SERVERS
from guests.qemu import Qemu

pytestmark = [pytest.mark.vm, pytest.mark.slow]

SMOKE = "experiments/studies/servers/smoke.toml"


def test_each_server_answers_all_requests_in_a_guest(qemu: Qemu, repository: Path, tmp_path: Path) -> None:
    assert qemu
    command = [sys.executable, "-m", "experiments", "run", SMOKE, "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    found = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    assert {block["cell"].partition("-")[0] for block in found} == set(SERVERS) - {
        one.name for one in INSTALLED
    }
    for run in (run for block in found for run in block["runs"]):
        assert all(one["latencies"]["count"] > 0 for one in run["tenants"])
        assert all(one["errors"] == one["unfinished"] == 0 for one in run["tenants"])
        assert 0 < run["client_cpu_s"] < run["seconds"], "clients have one CPU"
