"""What a run looks at while its load is on."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import cast

import pytest

from dasec.lab.kit import run
from dasec.lab.kit.controller import Controller
from dasec.lab.kit.errors import StartMissed
from dasec.lab.kit.run import Bench
from dasec.lab.kit.tenant import Running


def late() -> None:
    raise StartMissed


def never() -> None:
    raise AssertionError("waited through the warm-up")


def bench_of(warmup_s: float, seconds: float) -> Bench:
    timing = SimpleNamespace(warmup_s=warmup_s, seconds=seconds)
    return cast(Bench, SimpleNamespace(plan=SimpleNamespace(timing=timing)))


def test_the_daemon_has_to_be_there_before_the_warm_up_not_after_it() -> None:
    controller = cast(Controller, SimpleNamespace(ensure_begun=late, ensure_alive=never))
    watched = run._Watched(bench_of(3600.0, 1.0), "critical", 0, (), controller)
    with pytest.raises(StartMissed):
        run._watch(watched, time.monotonic_ns(), never)


def test_a_workload_may_end_when_its_load_does_and_not_before() -> None:
    told_ns: list[int] = []

    def ensure_alive(end_ns: int) -> None:
        told_ns.append(end_ns)
        raise StartMissed

    tenant = cast(Running, SimpleNamespace(ensure_alive=ensure_alive))
    start_ns = time.monotonic_ns()
    with pytest.raises(StartMissed):
        run._watch(run._Watched(bench_of(2.0, 3.0), "none", 0, (tenant,), None), start_ns, lambda: None)
    assert told_ns == [start_ns + 5_000_000_000]
