"""The daemon in a container as the DaemonSet has it, by a real containerd: however the container ends, all
knobs are as before, since the keeper lives outside of it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dasec.linux import cgroupfs
from guests.waiting import gone, wait_for
from tests.host.running import burner

from .in_pod import KEEPER_CGROUP, NAMED, OPTS_IN, Daemon, engine
from .pod import GROUP

pytestmark = pytest.mark.host

HOG = "held = []\nwhile True: held.append(bytes(1 << 20).replace(bytes(1), b'x'))"


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    with burner(4) as workload, engine(tmp_path) as pod:
        yield Daemon(pod, tmp_path, workload.pid, NAMED.format(workload.pid))


def use_up_memory(daemon: Daemon) -> None:
    """The kernel's killer takes the daemon."""
    Path(f"/proc/{daemon.pid}/oom_score_adj").write_text("1000")
    daemon.pod.execute("python3", "-c", HOG)


ENDS: dict[str, Callable[[Daemon], object]] = {
    "the daemon is killed": lambda daemon: os.kill(daemon.pid, signal.SIGKILL),
    "all of the container is killed": lambda daemon: daemon.pod.kill(),
    "the container is removed": lambda daemon: daemon.pod.remove(),
    "its memory is used up": use_up_memory,
    "it is told to stop": lambda daemon: os.kill(daemon.pid, signal.SIGTERM),
}


@pytest.mark.alone
@pytest.mark.parametrize("end", ENDS)
def test_however_the_container_ends_all_knobs_are_as_before_within_a_second(daemon: Daemon, end: str) -> None:
    with ThreadPoolExecutor(1) as beside:
        ending = beside.submit(ENDS[end], daemon)  # an engine returns later than the daemon ends
        wait_for(lambda: gone(daemon.pid), every_s=0.001)
        ended_s = time.monotonic()
        wait_for(lambda: daemon.knobs() == daemon.before, every_s=0.001)
        took_s = time.monotonic() - ended_s
        ending.result()
    wait_for(lambda: gone(daemon.keeper))
    assert daemon.knobs() == daemon.before
    assert took_s < 1
    print(f"{end}: {1000 * took_s:.0f} ms")


def test_a_container_that_opts_in_by_annotation_is_managed_and_left_as_it_was(tmp_path: Path) -> None:
    with engine(tmp_path) as pod:
        stranger = pod.start_other({"dasec.io/enable": "true"})
        daemon = Daemon(pod, tmp_path, stranger, OPTS_IN)
        os.kill(daemon.pid, signal.SIGTERM)
        wait_for(lambda: gone(daemon.keeper))
        assert daemon.knobs() == daemon.before


def test_the_keeper_is_in_no_group_of_the_container(daemon: Daemon) -> None:
    for mount in cgroupfs.tops():
        inside = Path(mount + GROUP, "cgroup.procs")
        assert str(daemon.keeper) not in (inside.read_text().split() if inside.exists() else ())
        assert str(daemon.keeper) in Path(mount, KEEPER_CGROUP, "cgroup.procs").read_text().split()


def test_without_the_hosts_cgroup_namespace_it_refuses_in_one_line(tmp_path: Path) -> None:
    group = Path(cgroupfs.find_hierarchy().mount, "dasec-namespace-test")
    group.mkdir()
    try:
        script = f'echo $$ > {group}/cgroup.procs && exec unshare --cgroup "$0" restore --directory "$1"'
        done = subprocess.run(
            ["sh", "-c", script, str(Path(".venv/bin/dasec").absolute()), str(tmp_path)],
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        wait_for(lambda: cgroupfs.remove_group(str(group)))
    assert done.returncode == 3
    assert "nsenter --cgroup=/proc/1/ns/cgroup" in done.stderr
    assert len(done.stderr.splitlines()) == 1
