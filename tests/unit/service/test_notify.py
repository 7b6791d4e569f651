"""The service manager hears of start, life, reload and end, at the socket that it named."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dasec.errors import ExitStatus, Refusal
from dasec.service.systemd import PINGS_IN_TIME, ServiceManager
from guests.waiting import PATIENCE_S

from .command import FAKE, configuration


class Inbox:
    """A service manager's socket."""

    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(path)
        self.socket.settimeout(PATIENCE_S)

    def next(self) -> list[str]:
        return self.socket.recv(4096).decode().splitlines()

    def waiting(self) -> list[str]:
        self.socket.setblocking(False)
        lines: list[str] = []
        try:
            for _ in range(100):
                lines += self.next()
        except BlockingIOError:
            return lines
        return lines


@pytest.fixture
def inbox(tmp_path: Path) -> Iterator[Inbox]:
    inbox = Inbox(str(tmp_path / "notify"))
    yield inbox
    inbox.socket.close()


def test_the_first_sign_of_life_is_ready_and_pings_come_in_time_but_not_every_period(
    tmp_path: Path, inbox: Inbox
) -> None:
    now_ns = 0
    environment = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "2000000"}
    manager = ServiceManager(environment, lambda: now_ns)
    for _ in range(50):
        manager.alive()
        now_ns += 80_000_000
    heard = inbox.waiting()
    assert heard[0] == "READY=1"
    assert set(heard[1:]) == {"WATCHDOG=1"}
    assert 4 <= len(heard[1:]) <= 2 * PINGS_IN_TIME


def test_without_a_watchdog_there_is_no_ping_and_without_a_manager_nothing(
    tmp_path: Path, inbox: Inbox
) -> None:
    quiet = ServiceManager({"NOTIFY_SOCKET": str(tmp_path / "notify")})
    alone = ServiceManager({})
    for manager in (quiet, alone, quiet, alone):
        manager.alive()
    assert inbox.waiting() == ["READY=1"]


@pytest.mark.parametrize("watchdog", ["x", "²", "-1", "1e6", "9" * 5000])
def test_a_time_that_no_manager_gave_is_one_line(watchdog: str) -> None:
    with pytest.raises(Refusal) as refused:
        ServiceManager({"WATCHDOG_USEC": watchdog})
    assert refused.value.status is ExitStatus.USAGE
    assert refused.value.lines == (
        f"WATCHDOG_USEC: {watchdog}: is no number: leave it to the service manager",
    )


def test_an_abstract_socket_and_one_that_is_gone_are_no_trouble() -> None:
    name = f"@dasec-test-{os.getpid()}"
    inbox = Inbox(name.replace("@", "\0"))
    manager = ServiceManager({"NOTIFY_SOCKET": name})
    manager.alive()
    assert inbox.waiting() == ["READY=1"]
    inbox.socket.close()
    manager.stopping()


def test_a_running_daemon_says_ready_alive_reloading_and_stopping(tmp_path: Path, inbox: Inbox) -> None:
    config = configuration(tmp_path, "period_ms = 20\n" + FAKE)
    command = [sys.executable, "-m", "dasec", "run", "--config", str(config)]
    environment = {**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "100000"}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as daemon:
        assert inbox.next() == ["READY=1"]
        assert inbox.next() == ["WATCHDOG=1"]
        config.write_text("period_ms = 20\nno = 1\n")
        daemon.send_signal(signal.SIGHUP)
        heard = [line for line in _until_ready(inbox) if not line.startswith("MONOTONIC_USEC=")]
        assert [line for line in heard if line != "WATCHDOG=1"][:2] == ["RELOADING=1", "READY=1"]
        assert heard[-1].startswith(f"STATUS=not reloaded: {config}: ")
        daemon.terminate()
        _, errors = daemon.communicate(timeout=PATIENCE_S)
    assert daemon.returncode == ExitStatus.DONE
    assert len([line for line in errors.splitlines() if "not reloaded" in line]) == 2
    assert inbox.waiting()[-1] == "STOPPING=1"


def _until_ready(inbox: Inbox) -> list[str]:
    heard: list[str] = []
    for _ in range(1000):
        heard += inbox.next()
        if "READY=1" in heard:
            return heard
    raise AssertionError(heard)
