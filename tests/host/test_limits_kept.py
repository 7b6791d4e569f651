"""Whatever the daemon writes, limits hold; where nothing is to be gained, it writes no quota."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from dasec.errors import ExitStatus
from dasec.lab.kit.tree import Group, Tree
from dasec.linux import bandwidth
from guests.waiting import wait_for

from .group import TestGroup
from .limited import ALWAYS, CAPS, LIMITED, OWN_GROUPS, SERVES, WORKLOAD, Threads, serving, used_ns
from .running import Running

pytestmark = pytest.mark.host

SECONDS = 10.0
EACH_RULE = {"bandwidth.cap", "bandwidth.lend", "bandwidth.borrow"}
LIMIT, LIMIT_CORES = "8000 20000", 0.4
GIVEN, GIVEN_CORES = "6000 20000", 0.3
"""In periods of 20 ms: with those of 100 ms ten seconds have one quota more or less, which is one percent."""

BINDS = 0.6
"""Of a limit: with so much it has stopped somebody. How much is left unused differs from day to day on one
machine (a tenth to a quarter), so that is measured in counted guests (experiments/studies/caps)."""

CONFIG = CAPS + OWN_GROUPS
DIVIDED = f"--rate 250 --helpers 1 --serial-us 1500 --helper-us 2000 --background 2 {ALWAYS}"
"""Both threads that serve want more than they were given."""

ONLY_COMPUTES = f"--rate 0.000001 --helpers 0 --background 3 {ALWAYS}"
FREE = f"{SERVES} --background 1 {ALWAYS}"
"""One that computes: three without a limit starved all that is outside their group for as long as they lived,
the daemon and the rest of the suite with it (Linux 6.18.44, which starves groups)."""


def used_by(threads: Threads) -> int:
    return sum(map(used_ns, threads.values()))


def rules(record: Path) -> Counter[str]:
    """By which rule how many quotas were written."""
    lines = [json.loads(line) for line in record.read_text().splitlines(keepends=True) if line.endswith("\n")]
    assert any("period" in line for line in lines)
    results = [result for line in lines for result in line.get("results", ())]
    return Counter(rule for _, knob, _, _, rule, *_ in results if knob == "cap")


@pytest.mark.timing
def test_with_caps_and_loans_no_more_is_used_in_ten_seconds_than_limit_and_quotas_allow(
    group: TestGroup, tmp_path: Path
) -> None:
    """From the daemon's first look on: it writes most before the reserve is settled. Longer where the machine
    is busy otherwise, for the daemon sees later that siblings wait."""
    with ExitStack() as ends:
        (whole, limited), (parts, divided) = (
            ends.enter_context(serving(options, tmp_path / name))
            for name, options in (("limited", LIMITED), ("divided", DIVIDED))
        )
        group.enter(whole, "whole")
        group.enter(parts, "parts")
        quota_file = bandwidth.quota_file(group.hierarchy, f"{group.group}/whole")
        bandwidth.write_quota(quota_file, LIMIT)
        tree = Tree(group.hierarchy.version, group.directory / "parts", f"{group.group}/parts")
        tree.make(Group(name, threaded=True) for name in divided)
        for name, tid in divided.items():
            tree.place(tid, name)
            bandwidth.write_quota(bandwidth.quota_file(group.hierarchy, f"{group.group}/parts/{name}"), GIVEN)
        config, record = tmp_path / "dasec.toml", tmp_path / "record"
        config.write_text(
            CONFIG + WORKLOAD.format(name="limited", pid=whole) + WORKLOAD.format(name="divided", pid=parts)
        )
        with Running(tmp_path, config, record=record) as daemon:
            begun_ns = time.monotonic_ns()
            before = [used_by(threads) for threads in (limited, divided)]
            time.sleep(SECONDS)
            wait_for(lambda: rules(record).keys() >= EACH_RULE, patience_s=30, every_s=1)
            after = [used_by(threads) for threads in (limited, divided)]
            took_ns = time.monotonic_ns() - begun_ns
            daemon.stop()
        by_limit, by_quotas = ((end - begin) / took_ns for begin, end in zip(before, after, strict=True))
        print(f"{by_limit:.4f} of {LIMIT_CORES}, {by_quotas:.4f} of {len(divided) * GIVEN_CORES}")
        assert BINDS * LIMIT_CORES < by_limit <= 1.01 * LIMIT_CORES
        assert BINDS * len(divided) * GIVEN_CORES < by_quotas <= 1.01 * len(divided) * GIVEN_CORES


def test_where_nobody_is_waited_for_or_nobody_is_limited_no_quota_is_written(
    group: TestGroup, tmp_path: Path
) -> None:
    with ExitStack() as ends:
        (computes, computing), (free, _) = (
            ends.enter_context(serving(options, tmp_path / name))
            for name, options in (("computes", ONLY_COMPUTES), ("free", FREE))
        )
        group.enter(computes, "computes")
        group.enter(free, "free")
        group.limit("computes", 40)
        stopped = bandwidth.usage_of(str(group.directory / "computes")).throttled_ns
        config, record = tmp_path / "dasec.toml", tmp_path / "record"
        config.write_text(
            CONFIG + WORKLOAD.format(name="computes", pid=computes) + WORKLOAD.format(name="free", pid=free)
        )
        command = [sys.executable, "-m", "dasec", "run", "--config", str(config), "--periods", "40"]
        command += ["--directory", str(tmp_path / "state"), "--record", str(record)]
        assert subprocess.run(command, check=False, capture_output=True).returncode == ExitStatus.DONE
        assert bandwidth.usage_of(str(group.directory / "computes")).throttled_ns > stopped, "it binds"
        assert all(Path(f"/proc/{tid}").exists() for tid in computing.values()), "the load ended first"
        assert rules(record) == {}
