"""How late a thread wakes up on a core on which something like the daemon runs, and gives way or does not.

    python experiments/studies/costs/give_way/measure.py [ROUNDS] [PICTURE]

A round is every arm once, in an order of its own: 3 s of a thread that sleeps 0.3 to 1 ms and works 0.1 ms on
one core, alone or beside a process that works 1.5 ms every 20 ms, as a look of the daemon does.
"""

from __future__ import annotations

import json
import os
import random
import signal
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from dasec.service.give_way import giving_way

CORE = 0
ALONE, PLAIN, GIVES_WAY = ARMS = ("alone", "beside it", "beside it, giving way")
RUN_S, SETTLE_S = 3.0, 0.1
SLEEP_S = (0.3e-3, 1e-3)
WORK_S, LOOK_S, BETWEEN_LOOKS_S = 0.1e-3, 1.5e-3, 0.02
LATE_S = 0.5e-3


def work(seconds: float) -> None:
    """On the CPU."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


@contextmanager
def looking(arm: str) -> Iterator[None]:
    """A process beside us that works as the daemon does, but for the arm alone."""
    if arm == ALONE:
        yield
        return
    child = os.fork()
    if child == 0:
        with giving_way() if arm == GIVES_WAY else nullcontext():
            while True:
                time.sleep(BETWEEN_LOOKS_S)
                work(LOOK_S)
    try:
        time.sleep(SETTLE_S)
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def lateness_s(chance: random.Random) -> list[float]:
    """Of each wake-up in one run."""
    late, end = [], time.perf_counter() + RUN_S
    while (begin := time.perf_counter()) < end:
        sleep_s = chance.uniform(*SLEEP_S)
        time.sleep(sleep_s)
        late.append(time.perf_counter() - begin - sleep_s)
        work(WORK_S)
    return late


def figures(late: list[float]) -> dict[str, float]:
    """Mean, median and p99 in microseconds, and how many in a hundred were late."""
    points = statistics.quantiles(late, n=100)
    told = {"mean_us": statistics.fmean(late), "p50_us": points[49], "p99_us": points[98]}
    late_percent = 100 * sum(one > LATE_S for one in late) / len(late)
    return {**{name: 1e6 * value for name, value in told.items()}, "late_percent": late_percent}


def measure(rounds: int) -> dict[str, list[dict[str, float]]]:
    """Of each arm its figures, by round; a line a run meanwhile."""
    os.sched_setaffinity(0, {CORE})
    chance = random.Random(1)
    found: dict[str, list[dict[str, float]]] = {arm: [] for arm in ARMS}
    for number in range(rounds):
        for arm in chance.sample(ARMS, len(ARMS)):
            with looking(arm):
                found[arm].append(figures(lateness_s(chance)))
            print(f"round {number + 1} of {rounds}, {arm}: {json.dumps(found[arm][-1])}", file=sys.stderr)
    return found


def draw(found: dict[str, list[dict[str, float]]], file: str) -> None:
    """Each round a point, the median a line."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3), dpi=110, layout="constrained")
    panels = figure.subplots(1, 2)
    for axes, (name, label) in zip(
        panels, (("p99_us", "p99 of lateness, µs"), ("late_percent", "late by 0.5 ms, %")), strict=True
    ):
        for row, arm in enumerate(ARMS):
            values = [one[name] for one in found[arm]]
            axes.plot(values, [row] * len(values), ".", color="#4477aa")
            axes.plot([statistics.median(values)] * 2, [row - 0.3, row + 0.3], color="#222222")
        axes.set(xlabel=label, yticks=range(len(ARMS)), yticklabels=ARMS, xlim=(0, None))
    figure.savefig(file)


def main() -> None:
    found = measure(int(sys.argv[1]) if len(sys.argv) > 1 else 8)
    for arm, rounds in found.items():
        medians = {name: statistics.median(one[name] for one in rounds) for name in rounds[0]}
        print(arm, " ".join(f"{name} {value:.1f}" for name, value in medians.items()))
    if len(sys.argv) > 2:
        draw(found, sys.argv[2])


if __name__ == "__main__":
    main()
