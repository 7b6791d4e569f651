"""An application in a virtual machine, in the groups that libvirt would make, under the daemon."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.places.places import unready_place
from tests.vm.errands import GuestImage

from ..conftest import refuse
from .test_experiments import check_nothing_is_left

FILE = """
title = "memcached in a guest"
policies = ["critical"]
places = ["guest"]
ratios = [1]
cores = 2
repetitions = 1
seconds = 1.0
warmup_s = 0.5
[needs]
load = 10000
[[mix]]
name = "cache"
[[mix.workload]]
driver = "memcached"
threads = 2
rate_per_s = 50
options = { keys = 100 }
"""
RUN = Path("raw/cache-r1-vm-guest")


@pytest.mark.host
@pytest.mark.vm
@pytest.mark.ahead.with_args(GuestImage("small"))
def test_memcached_in_a_guest_is_measured_and_its_vcpus_are_found(repository: Path, tmp_path: Path) -> None:
    if reason := unready_place("guest"):
        refuse(reason)
    file, out = tmp_path / "guest.toml", tmp_path / "out"
    file.write_text(FILE, encoding="utf-8")
    command = [sys.executable, "-m", "experiments", "run", str(file), "--out", str(out)]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (block,) = map(json.loads, (out / "runs.jsonl").read_text(encoding="utf-8").splitlines())
    assert all(run["tenants"][0]["latencies"]["count"] > 10 for run in block["runs"])
    assert {run["arm"] for run in block["runs"]} == {"none", "none-again", "critical"}
    knobs = json.loads((out / RUN / "0-critical/knobs.json").read_text(encoding="utf-8"))
    assert sorted(one["name"].partition("/")[0] for one in knobs) == ["CPU 0", "CPU 1"]
    assert all(one["weight"] for one in knobs)
    _, seen, *_ = (out / RUN / "0-critical.jsonl").read_text(encoding="utf-8").splitlines()
    (workload,) = json.loads(seen)["workloads"]
    assert sorted(vcpu[3].partition("/")[0] for vcpu in workload["vcpus"]) == ["CPU 0", "CPU 1"]
    check_nothing_is_left()
