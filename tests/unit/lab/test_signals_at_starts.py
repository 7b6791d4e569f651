"""A signal that comes while a process is being started, before anybody knows it, ends that process, too."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from dasec.lab.classify import trial
from dasec.lab.kit.errors import STOPPING, Interrupted, interruptible, undisturbed
from dasec.lab.overhead import overhead
from dasec.lab.overhead.burners import Burden, burning

A_LOAD_TOOL = """#!/bin/sh
[ "$*" = "threads --threads 1 --rate 1 --seconds 0.01" ] && echo '{"iterations_per_us": 1}' && exit
exec sleep 300
"""


class Meanwhile(subprocess.Popen):  # type: ignore[type-arg]
    """While this process begins, somebody tells us to stop."""

    begun: list[subprocess.Popen[bytes]]

    def __init__(self, command: list[str], **how: object) -> None:
        super().__init__(command, **how)  # type: ignore[call-overload]
        if "--seconds" in command:
            return  # it ends by itself
        self.begun.append(self)
        signal.raise_signal(signal.SIGTERM)


def measured(folder: Path) -> None:
    with overhead._daemon(folder, dry_run=True):
        pass


def burned(_: Path) -> None:
    with burning(Burden(2, 500, 1.0)):
        pass


def tried(folder: Path) -> None:
    trial._run(["sleep", "300"], frozenset(os.sched_getaffinity(0)), str(folder / "members"))


@pytest.mark.parametrize("start", [measured, burned, tried])
def test_a_process_that_nobody_knew_yet_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: Callable[[Path], None]
) -> None:
    tool = tmp_path / "load"
    tool.write_text(A_LOAD_TOOL, encoding="utf-8")
    tool.chmod(0o700)
    monkeypatch.setenv("DASEC_LOAD", str(tool))
    monkeypatch.setattr(Meanwhile, "begun", [], raising=False)
    monkeypatch.setattr(subprocess, "Popen", Meanwhile)
    try:
        with pytest.raises(Interrupted), interruptible():
            start(tmp_path)
        assert [process.poll() is None for process in Meanwhile.begun] == [False]
    finally:
        for process in Meanwhile.begun:
            process.kill()
            process.wait()


@pytest.mark.parametrize("number", STOPPING)
def test_a_signal_in_the_block_counts_once_at_its_end_and_what_began_there_hears_its_own(
    number: signal.Signals,
) -> None:
    before = signal.getsignal(number)
    begun: list[subprocess.Popen[bytes]] = []

    def begin() -> None:
        with undisturbed():
            signal.raise_signal(number)
            begun.append(subprocess.Popen(["sleep", "300"]))

    with pytest.raises(Interrupted), interruptible():
        begin()
    (child,) = begun
    child.send_signal(number)
    assert child.wait() == -number
    assert signal.getsignal(number) is before
