"""Runs in GluonCV's environment: a model that requests come to by a schedule; files as of `dasec load`.

It loads nothing of this project, whose libraries that environment does not have.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import signal
import sys
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

DRAIN_S = 5.0
"""As long as others wait for late answers (dasec.lab.kit.tenant)."""

SHAPES = {"cifar": (1, 3, 32, 32), "slowfast": (1, 3, 36, 224, 224), "kinetics": (1, 3, 16, 112, 112)}
IMAGE = (1, 3, 224, 224)


NAME = "gluoncv"
"""Of all of its threads: whoever has background beside it tells them apart by that."""


def shape_of(model: str) -> tuple[int, ...]:
    """What a request of this model is."""
    return next((shape for name, shape in SHAPES.items() if name in model), IMAGE)


def offsets_ns(seed: int, rate_per_s: float, total_s: float) -> list[int]:
    """A Poisson process, known whole before the start; depends on its arguments only."""
    chance, at_s, found = random.Random(f"arrivals/{seed}"), 0.0, []
    while (at_s := at_s + chance.expovariate(rate_per_s)) < total_s:
        found.append(int(at_s * 1e9))
    return found


def serve(
    work: Callable[[], None], offsets: Sequence[int], start_ns: int, end_ns: int
) -> list[tuple[int, int, int]]:
    """queue, service, sojourn of each request that was answered before the end; all in turn."""
    done = []
    for offset in offsets:
        due_ns = start_ns + offset
        while (left_ns := due_ns - time.monotonic_ns()) > 0:
            time.sleep(left_ns / 1e9)
        begun_ns = time.monotonic_ns()
        if begun_ns > end_ns:
            break
        work()
        ended_ns = time.monotonic_ns()
        done.append((begun_ns - due_ns, ended_ns - begun_ns, ended_ns - due_ns))
    return done


def load(model: str) -> Callable[[], None]:
    """The model with random weights, and one request to it, which has been made once."""
    import mxnet
    from gluoncv import model_zoo

    kinetics = {"pretrained_base": False} if "kinetics" in model else {}
    net = model_zoo.get_model(model, pretrained=False, **kinetics)
    net.initialize(mxnet.init.Xavier())
    net.hybridize(static_alloc=True)
    request = mxnet.ndarray.random.uniform(shape=shape_of(model))

    def work() -> None:
        net(request).wait_to_read()

    work()
    return work


@dataclass(frozen=True)
class CpuMark:
    """What this process has used of the CPUs, and for how long its threads have waited for one."""

    at_ns: int
    used_ns: int
    waited_ns: int

    @classmethod
    def now(cls) -> CpuMark:
        """schedstat's second number is the waiting; a thread that has ended waits no more."""
        waited_ns = 0
        for thread in Path("/proc/self/task").iterdir():
            with contextlib.suppress(OSError):
                waited_ns += int((thread / "schedstat").read_text().split()[1])
        return cls(time.monotonic_ns(), time.process_time_ns(), waited_ns)

    def until(self, end: CpuMark) -> dict[str, float]:
        """As the load tool writes it."""
        return {
            "window_s": (end.at_ns - self.at_ns) / 1e9,
            "total_s": (end.used_ns - self.used_ns) / 1e9,
            "waited_s": (end.waited_ns - self.waited_ns) / 1e9,
        }


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    for name in ("--rate", "--warmup", "--seconds"):
        parser.add_argument(name, type=float, required=True)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str], prepare: Callable[[str], Callable[[], None]] = load) -> None:
    """Says that it is ready, reads when to begin, serves, writes."""
    asked = parse(arguments)
    offsets = offsets_ns(asked.seed, asked.rate, asked.warmup + asked.seconds)
    (asked.folder / "arrivals").write_bytes(array("Q", offsets).tobytes())
    work = prepare(asked.model)
    (asked.folder / "ready").touch()
    start_ns = int(sys.stdin.readline())
    warmup_end_ns = start_ns + int(asked.warmup * 1e9)
    end_ns = warmup_end_ns + int((asked.seconds + DRAIN_S) * 1e9)
    first = sum(offset < asked.warmup * 1e9 for offset in offsets)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it ends by itself after the drain
    serve(work, offsets[:first], start_ns, end_ns)
    begin = CpuMark.now()
    measured = serve(work, offsets[first:], start_ns, end_ns)
    nominal_end_ns = warmup_end_ns + int(asked.seconds * 1e9)
    while (left_ns := nominal_end_ns - time.monotonic_ns()) > 0:
        time.sleep(left_ns / 1e9)
    samples = array("Q", [value for record in measured for value in record])
    (asked.folder / "samples").write_bytes(samples.tobytes())
    result = {
        "completed": len(measured),
        "errors": 0,
        "unfinished": len(offsets) - first - len(measured),
        "late_sends": 0,
        "seconds_measured": (time.monotonic_ns() - warmup_end_ns) / 1e9,
        "cpu": begin.until(CpuMark.now()),
        "background": {"cpu_s": 0.0},
    }
    (asked.folder / "out.json").write_text(json.dumps(result), encoding="utf-8")


def run(arguments: Sequence[str], prepare: Callable[[str], Callable[[], None]] = load) -> None:
    """As a process of its own, whose threads inherit its name."""
    Path("/proc/self/comm").write_text(NAME, encoding="ascii")
    main(arguments, prepare)


if __name__ == "__main__":
    run(sys.argv[1:])
