"""A KVM virtual machine under our client, as an application of experiments."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from dasec.errors import Refusal
from dasec.lab.kit.driver import WorkOrder
from dasec.lab.kit.process import name_of, thread_ids
from experiments.drivers import services
from experiments.drivers.servers import SERVERS
from experiments.places.places import Anywhere
from guests.bare.machine import why_not_kvm

from .tool import Tool

DRIVER = SERVERS["kvm"]


def order(folder: Path, threads: int = 3, **options: str) -> WorkOrder:
    told = {name.replace("_", "-"): text for name, text in options.items()}
    return WorkOrder("one", threads, 200, 1, 0.05, 0.5, folder, told)


def test_vcpus_that_serve_come_first_and_requests_wait_for_them_alone(tmp_path: Path) -> None:
    asked = order(tmp_path, 3, background="2")
    assert DRIVER.vcpus(asked) == 5
    assert DRIVER.critical(asked) == ("CPU 0/KVM", "CPU 1/KVM", "CPU 2/KVM")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"helper_us": "much"}, "one: helper-us: must be a whole number from 0 on, got 'much'"),
        ({"rounds_per_us": "0"}, "one: rounds-per-us: must be a whole number from 1 on, got '0'"),
        ({"connections": "no"}, "one: connections: must be a whole number from 1 on, got 'no'"),
        (
            {"background": "14"},
            "one: threads: must be 2 at least, and 16 at most with background, got '3'",
        ),
        ({"keys": "5"}, "one: keys: is no option of this application: it has background, burst-us,"),
        *(
            (
                {"background": "1", "bursts_per_s": wrong},
                "one: bursts-per-s: must leave a rest of 1 us to 4.3 s after each of 10000 us,"
                f" got '{wrong}'",
            )
            for wrong in ("100", "0", "abc", "nan", "inf", "-1", "0.1")
        ),
    ],
)
def test_an_order_that_makes_no_sense_is_one_line(
    options: dict[str, str], complaint: str, tmp_path: Path
) -> None:
    with pytest.raises(Refusal) as caught:
        DRIVER.critical(order(tmp_path / "order", 3, **options))
    (line,) = caught.value.lines
    assert line.startswith(complaint)


def test_one_vcpu_has_nobody_to_help_it(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="must be 2 at least"):
        DRIVER.critical(order(tmp_path, 1))


def test_where_nothing_is_put_together_yet_it_says_how(
    tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DASEC_LOAD", str(tool.path))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(services, "BUILT", tmp_path)
    how = "make -C experiments/services kvm (qemu-system-x86)"
    assert DRIVER.missing() == f"dasec-kvm: not found: {how}"


def test_all_requests_are_answered_by_threads_of_kvm(
    tool: Tool, tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if why := why_not_kvm():
        pytest.skip(f"{why}; tests/vm/test_latencies.py has it on an emulated machine that does")
    monkeypatch.setenv("DASEC_LOAD", str(tool.path))
    monkeypatch.setattr(services, "BUILT", tmp_path / "built")
    made = (
        "make",
        "-s",
        "-C",
        str(repository / "experiments/services"),
        "kvm",
        f"BUILD={tmp_path / 'built'}",
    )
    subprocess.run(made, check=True)
    running = DRIVER.start(order(tmp_path / "order", background="1"), Anywhere())
    try:
        running.await_up()
        names = {name_of(*one) for one in thread_ids(running.pids())}
        running.begin(time.monotonic_ns() + 300_000_000)
        done = running.finish()
    finally:
        running.stop()
    assert names >= {f"CPU {number}/KVM" for number in range(4)}
    assert done.work > 0
    assert (done.errors, done.unfinished) == (0, 0)
