"""The real daemon in a world of hostile names: it and its keeper live, nobody is hidden, all is put back."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dasec.linux import cgroupfs
from dasec.safety.fingerprint import Fingerprint, fingerprint
from dasec.safety.journal.journal import peek
from guests.waiting import gone, wait_for
from tests.chaos.test_chaos import SHUFFLE
from tests.host.group import TestGroup
from tests.host.running import Running
from tests.kin import keeper_of

from . import user
from .world import remove_tree, threads_that_differ, unprintable

pytestmark = pytest.mark.host

NAMED = Path(__file__).with_name("named.py")
NESTED = 1200
NAMES = (
    *user.NAMES,
    *(bytes((number,)) for number in (1, 7, 8, 9, 13, 27, 127, 128, 133, 255)),
    b"dasec-probe-1",
)

MOUNTED = 'mount -t tmpfs none "$1" && shift && exec "$@"'
COMMANDS = (
    *(("status",), ("status", "--json"), ("explain", "named"), ("explain", "named", "--json")),
    *(("verify",), ("top", "--times", "1"), ("probe",)),
)


class Named:
    """Threads with these names, each in a group with the same name, below a group with a thousand others."""

    def __init__(self) -> None:
        self.group = TestGroup("names")
        self._at = os.fsencode(self.group.directory)
        words = [name.hex() for name in NAMES]
        self._process = subprocess.Popen(
            [sys.executable, "-S", str(NAMED), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"
        self.pid = self._process.pid
        self.group.enter(self.pid)
        self.tids = sorted(int(tid) for tid in os.listdir(f"/proc/{self.pid}/task"))
        for tid, name in zip((tid for tid in self.tids if tid != self.pid), NAMES, strict=True):
            place = self._at + b"/" + name.translate(None, b"\n/")
            with contextlib.suppress(FileExistsError):
                os.mkdir(place)
            with open(place + b"/tasks", "wb", buffering=0) as tasks:
                tasks.write(b"%d" % tid)
        at = os.open(self._at, os.O_RDONLY)
        for _ in range(NESTED):
            os.mkdir("deep", dir_fd=at)
            inner = os.open("deep", os.O_RDONLY, dir_fd=at)
            os.close(at)
            at = inner
        os.close(at)
        self.before = fingerprint([self.pid])

    def put_back(self) -> bool:
        """Is every thread as it was?"""
        return not threads_that_differ(self.before, self.now())

    def now(self) -> Fingerprint:
        return fingerprint([self.pid])

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()
        remove_tree(str(self.group.directory))


@pytest.fixture
def named() -> Iterator[Named]:
    if cgroupfs.find_hierarchy().version != 1:
        pytest.skip("single threads go into plain groups on cgroup v1 only")
    with contextlib.closing(Named()) as made:
        yield made


@pytest.fixture
def within(tmp_path: Path) -> list[str]:
    """A private mount namespace in which a mount has a name with a carriage return."""
    place = tmp_path / "x\ry\x0b\x85z"
    place.mkdir()
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", MOUNTED, "sh", str(place)]


@pytest.mark.parametrize("end", ["daemon killed", "both killed", "stopped"])
def test_no_name_ends_or_hides_or_keeps_anything(
    named: Named, within: list[str], tmp_path: Path, end: str
) -> None:
    config, record = tmp_path / "names.toml", tmp_path / "record"
    config.write_text(
        'policy = "shuffle"\n[host]\nown_cgroups = true\nweights = "on"\n'
        f'[[workload]]\nname = "named"\ncgroup = "{named.group.group}"\n'
    )

    def dasec(*command: str) -> str:
        where = () if command == ("probe",) else ("--directory", str(tmp_path / "state"))
        line = [*within, sys.executable, "-m", "dasec", *command, *where]
        done = subprocess.run(line, capture_output=True)
        text = (done.stdout + done.stderr).decode()
        assert "Traceback" not in text
        assert unprintable(text.removesuffix("\n")) == []
        return text

    with Running(tmp_path, config, str(SHUFFLE), record=record, within=within) as daemon:
        daemon.wait_for_work()
        wait_for(lambda: daemon.status()["workloads"][0]["vcpus"] == len(named.tids))
        wait_for(lambda: not named.put_back())
        keeper = keeper_of(daemon.pid)
        assert keeper
        if end == "stopped":
            for command in COMMANDS:
                dasec(*command)
            daemon.stop()
        else:
            for pid in (keeper, daemon.pid) if end == "both killed" else (daemon.pid,):
                os.kill(pid, signal.SIGKILL)
            wait_for(lambda: gone(daemon.pid) and gone(keeper))
            if end == "both killed":
                dasec("restore")
        assert threads_that_differ(named.before, named.now()) == ()
        assert (peek(daemon.state)[0].held, peek(daemon.state)[0].groups) == ({}, {})
        assert unprintable(daemon.log().removesuffix("\n")) == []
        assert "Traceback" not in daemon.log()
    assert dasec("verify") == "clean: the kernel holds what it should\n"
