"""The daemon in a container as the DaemonSet has it, by a real containerd: however the container ends, all
knobs are as before, since the keeper lives outside of it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from dasec.linux import affinity, cgroupfs, schedattr
from dasec.linux.schedattr import SchedAttr
from guests.waiting import gone, wait_for
from tests.conftest import refuse
from tests.host.running import burner

from .pod import GROUP, Pod

pytestmark = pytest.mark.host

KEEPER_CGROUP = "dasec-keeper-test"
MEMORY_BYTES = 192 << 20
HOG = "held = []\nwhile True: held.append(bytes(1 << 20).replace(bytes(1), b'x'))"


NAMED = '[[workload]]\nname = "burner"\npids = [{}]\n'
OPTS_IN = "[containers]\nannotations = true\n"


class Daemon:
    """One in a container, with one workload on the host that it has changed."""

    def __init__(self, pod: Pod, place: Path, workload: int, who: str = NAMED) -> None:
        self.pod, self._workload = pod, workload
        self.before = self.knobs()
        folder = place / "etc"
        folder.mkdir()
        (folder / "dasec.toml").write_text(
            'policy = "static"\n'
            f'[host]\nown_cgroups = true\nkeeper_cgroup = "{KEEPER_CGROUP}"\n{who.format(workload)}'
        )
        self.pid = pod.start(folder / "dasec.toml")
        wait_for(lambda: self.is_managing() or gone(self.pid))
        assert not gone(self.pid), pod.said()
        (self.keeper,) = (int(word) for word in _members(KEEPER_CGROUP, "cpu"))

    def knobs(self) -> list[tuple[tuple[int, ...], SchedAttr, bytes]]:
        """Mask, nice and slice, and groups of each thread of the workload."""
        return [
            (
                affinity.get(int(task.name)),
                schedattr.get(int(task.name)),
                (task / "cgroup").read_bytes(),
            )
            for task in sorted(Path(f"/proc/{self._workload}/task").iterdir())
        ]

    def is_managing(self) -> bool:
        """Has it changed every thread?"""
        return all(was != now for was, now in zip(self.before, self.knobs(), strict=True))

    def kill_for_want_of_memory(self) -> None:
        """The kernel's killer, which takes the daemon."""
        Path(f"/proc/{self.pid}/oom_score_adj").write_text("1000")
        self.pod.execute("python3", "-c", HOG)


@contextmanager
def engine(place: Path) -> Iterator[Pod]:
    """A containerd that can run the pod; when it has ended, so has the keeper's group."""
    for program in ("containerd", "ctr", "runc"):
        if shutil.which(program) is None:
            refuse(f"needs {program}")
    if cgroupfs.find_hierarchy().version != 1:
        refuse("needs cgroup v1, where runc needs no systemd")
    state = place / "state"
    state.mkdir(mode=0o700)
    with Pod(place, {"/run/dasec": state}, MEMORY_BYTES).engine() as pod:
        yield pod
    for mount in cgroupfs.tops():
        assert not Path(mount, KEEPER_CGROUP).exists(), "the keeper has left its group"


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    with burner(4) as workload, engine(tmp_path) as pod:
        yield Daemon(pod, tmp_path, workload.pid)


ENDS: dict[str, Callable[[Daemon], object]] = {
    "the daemon is killed": lambda daemon: os.kill(daemon.pid, signal.SIGKILL),
    "all of the container is killed": lambda daemon: daemon.pod.kill(),
    "the container is removed": lambda daemon: daemon.pod.remove(),
    "its memory is used up": Daemon.kill_for_want_of_memory,
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


def _members(name: str, controller: str) -> list[str]:
    return (
        Path(cgroupfs.find_hierarchy(controller=controller).mount, name, "cgroup.procs").read_text().split()
    )
