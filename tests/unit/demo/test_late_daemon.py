"""A daemon that is not there when the load begins is a run that is tried again."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import cast

import pytest

from dasec.demo import run
from dasec.demo.controller import Controller
from dasec.demo.errors import StartMissed
from dasec.demo.run import Bench


def late() -> None:
    raise StartMissed


def never() -> None:
    raise AssertionError("waited through the warm-up")


def test_the_daemon_has_to_be_there_before_the_warm_up_not_after_it() -> None:
    bench = cast(
        Bench, SimpleNamespace(plan=SimpleNamespace(timing=SimpleNamespace(warmup_s=3600.0, seconds=1.0)))
    )
    controller = cast(Controller, SimpleNamespace(ensure_begun=late, ensure_alive=never))
    watched = run._Watched(bench, "critical", 0, (), controller)
    with pytest.raises(StartMissed):
        run._watch(watched, time.monotonic_ns(), never)
