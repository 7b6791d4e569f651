"""Ids that are given out again, by the kernel itself: in a pid namespace one may say which comes next."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.host

STARTED = """
import os, shutil, subprocess, sys
from dasec.linux import procfs
from guests.waiting import wait_for

def started(name):
    link = f"{sys.argv[2]}/{name}"
    os.symlink(shutil.which("sleep"), link)
    child = subprocess.Popen([link, "1000"])
    wait_for(lambda: procfs.read_stat(child.pid, child.pid).comm == name)
    return child

def exchanged(first):
    first.kill()
    first.wait()
    with open("/proc/sys/kernel/ns_last_pid", "w") as file:
        file.write(str(first.pid - 1))
    second = started("stranger")
    assert second.pid == first.pid, (first.pid, second.pid)
    return second

first = started("victim")
"""

PROGRAM = """
from dasec.workloads.discovery import SCAN_NS
from dasec.workloads.processes import Selector, StaticWorkloads

kinds = {"pids": {"pids": (first.pid,)}, "comm": {"comm": "victim"}}
workloads = StaticWorkloads([Selector("one", **kinds[sys.argv[1]])])
assert workloads.discover(0).roster[0].threads == ((first.pid, first.pid),)
second = exchanged(first)
found = [workloads.discover(turn * 2 * SCAN_NS).roster[0].threads for turn in range(1, 10)]
second.kill()
second.wait()
print(sorted(set(found)))
"""


RELOADED = """
from pathlib import Path
from dasec.config.config import load
from dasec.log import Announcer
from dasec.model import Level
from dasec.service.live_config import Regime

config = Path(sys.argv[2]) / "dasec.toml"
mine = f'[[workload]]\\nname = "one"\\npids = [{first.pid}]\\n'
other = f'[[workload]]\\nname = "other"\\npids = [{os.getpid()}]\\n'
config.write_text(mine)
regime = Regime(config, load(config), Level.FULL, Announcer())
assert regime.roster()[0].threads == ((first.pid, first.pid),)
second = exchanged(first)
found = []
asked = '[containers]\\nannotations = true\\n'
for text in (mine + other, asked + mine + other, mine + 'share = 512\\n' + other, other):
    config.write_text(text)
    regime.reload()
    found += [one.threads for one in regime.roster() if one.name == "one"]
config.write_text(mine)
regime.reload()
anew = regime.roster()[0].threads == ((first.pid, first.pid),)
second.kill()
second.wait()
print(found, anew)
"""


def in_a_namespace(*arguments: str) -> tuple[str, str]:
    """What a program that chooses the next id prints."""
    if not Path("/proc/sys/kernel/ns_last_pid").exists():
        pytest.skip("this kernel does not let one choose the next id")
    command = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout, done.stderr


@pytest.mark.parametrize("kind", ["pids", "comm"])
def test_whoever_has_the_id_later_is_somebody_else(kind: str, tmp_path: Path) -> None:
    assert in_a_namespace(STARTED + PROGRAM, kind, str(tmp_path)) == ("[()]\n", "")


def test_whoever_has_the_id_when_the_file_is_read_again_is_somebody_else(tmp_path: Path) -> None:
    assert in_a_namespace(STARTED + RELOADED, "pids", str(tmp_path)) == ("[(), (), ()] True\n", "")
