"""Ids that are given out again, by the kernel itself: in a pid namespace one may say which comes next."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.host

PROGRAM = """
import os, shutil, subprocess, sys
from dasec.linux import procfs
from dasec.workloads.discovery import SCAN_NS
from dasec.workloads.processes import Selector, StaticWorkloads
from guests.waiting import wait_for

def started(name):
    link = f"{sys.argv[2]}/{name}"
    os.symlink(shutil.which("sleep"), link)
    child = subprocess.Popen([link, "1000"])
    wait_for(lambda: procfs.read_stat(child.pid, child.pid).comm == name)
    return child

first = started("victim")
kinds = {"pids": {"pids": (first.pid,)}, "comm": {"comm": "victim"}}
workloads = StaticWorkloads([Selector("one", **kinds[sys.argv[1]])])
assert workloads.discover(0).roster[0].threads == ((first.pid, first.pid),)
first.kill()
first.wait()
with open("/proc/sys/kernel/ns_last_pid", "w") as file:
    file.write(str(first.pid - 1))
second = started("stranger")
assert second.pid == first.pid, (first.pid, second.pid)
found = [workloads.discover(turn * 2 * SCAN_NS).roster[0].threads for turn in range(1, 10)]
second.kill()
second.wait()
print(sorted(set(found)))
"""


@pytest.mark.parametrize("kind", ["pids", "comm"])
def test_whoever_has_the_id_later_is_somebody_else(kind: str, tmp_path: Path) -> None:
    if not Path("/proc/sys/kernel/ns_last_pid").exists():
        pytest.skip("this kernel does not let one choose the next id")
    program = [sys.executable, "-c", PROGRAM, kind, str(tmp_path)]
    command = ["unshare", "--pid", "--fork", "--mount-proc", *program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[()]\n", "")
