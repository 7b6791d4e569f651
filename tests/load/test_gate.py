"""What holds an application of TailBench when it has loaded, before one that only behaves like it."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

import pytest

from dasec.errors import Refusal
from dasec.lab.kit.driver import WorkOrder
from experiments.drivers.servers import SERVERS
from experiments.places.places import Anywhere

from ..unit.experiments.drivers.faketailbench import install
from .orders import carried_out
from .tool import Tool

DRIVER = SERVERS["tailbench-masstree"]


@pytest.fixture(autouse=True)
def _installed(tool: Tool, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    services = repository / "experiments/services"
    subprocess.run(["make", "-s", "-C", services, "gate", f"BUILD={tmp_path / 'build'}"], check=True)
    monkeypatch.setenv("DASEC_GATE", str(tmp_path / "build/dasec-gate.so"))
    monkeypatch.setenv("DASEC_LOAD", str(tool.path))
    monkeypatch.setenv("TAILBENCH_DIR", str(install(tmp_path / "tailbench")))


def order(folder: Path, **options: str) -> WorkOrder:
    return WorkOrder("masstree-0", 2, 200, 7, 0.1, 0.2, folder, {"gate": "true", **options})


def test_it_has_loaded_and_begins_when_it_is_told(tmp_path: Path) -> None:
    asked = order(tmp_path / "order")
    running = DRIVER.start(asked, Anywhere())
    try:
        running.await_up()
        assert "began" not in (asked.folder / "log").read_text()
        start_ns = time.monotonic_ns() + 200_000_000
        running.begin(start_ns)
        done = running.finish()
    finally:
        running.stop()
    (began,) = re.findall(r"began at (\d+)", (asked.folder / "log").read_text())
    assert int(began) >= start_ns
    assert done.latencies is not None
    assert done.work == done.latencies.count == 40


def test_a_time_that_is_over_is_told_as_the_load_tool_tells_it(tmp_path: Path) -> None:
    """A run is then made again, with more time."""
    with pytest.raises(Refusal, match="--start-at-ns: is over"):
        carried_out(DRIVER, order(tmp_path / "order"), after_ns=-1)


def test_what_bursts_beside_it_is_told_and_counted_with_it(tmp_path: Path) -> None:
    done = carried_out(DRIVER, order(tmp_path / "order", background="2"), after_ns=500_000_000)
    assert done.own_cpu
    assert done.work == 40
