"""What the wake-edge monitor adds to a wake-up: eventfd ping-pong on one core, on and off in turns.

    python experiments/studies/costs/wake_cost/measure.py [REPETITIONS]

Two rounds of `off` in each repetition are the control (A/A). "untracked": the monitor is attached, these
threads are not followed.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from operator import sub
from pathlib import Path
from typing import IO

from dasec.bpf.extent import Extent
from dasec.bpf.wake_edges import BpfEdges
from dasec.linux import procfs
from dasec.model import Level, VcpuId

ROUNDS = 4_000
BLOCKS = 8
"""The fastest of so many short runs is what other work on the machine disturbed least."""

SOURCE = Path(__file__).with_name("pingpong.c")
STATES = ("off", "off again", "edges untracked", "edges tracked", "full untracked", "full tracked")


class PingPong:
    """The program, and its two threads."""

    def __init__(self, folder: str, core: int) -> None:
        program = Path(folder) / "pingpong"
        subprocess.run(["gcc", "-O2", "-pthread", SOURCE, "-o", program], check=True)
        command = [str(program), str(core), str(ROUNDS)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._ask, self._answers = pipe(self._process.stdin), pipe(self._process.stdout)
        pid = self._process.pid
        tids = [int(tid) for tid in self._answers.readline().split()]
        self.threads = [VcpuId(pid, tid, procfs.read_stat(pid, tid).start_ticks) for tid in tids]

    def wakeup_ns(self) -> float:
        self._ask.write("go\n" * BLOCKS)
        self._ask.flush()
        return min(int(self._answers.readline()) for _ in range(BLOCKS)) / (2 * ROUNDS)

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


def pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


def measured(state: str, game: PingPong) -> float:
    if state.startswith("off"):
        return game.wakeup_ns()
    level, tracking = state.split()
    monitor = BpfEdges(Extent(Level(level)))
    try:
        if tracking == "tracked":
            monitor.follow(dict.fromkeys(game.threads, 0))
        return game.wakeup_ns()
    finally:
        monitor.close()


def main() -> None:
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 12
    times: dict[str, list[float]] = {state: [] for state in STATES}
    with tempfile.TemporaryDirectory() as folder:
        game = PingPong(folder, max(os.sched_getaffinity(0)))
        try:
            game.wakeup_ns()
            for _ in range(repetitions):
                for state in random.sample(STATES, len(STATES)):
                    times[state].append(measured(state, game))
        finally:
            game.end()
    base = statistics.median(times["off"])
    result = {
        state: {
            "ns": round(statistics.median(values), 1),
            "added_ns": round(statistics.median(map(sub, values, times["off"])), 1),
            "ratio": round(statistics.median(values) / base, 3),
            "added_each_ns": [round(one - off, 0) for one, off in zip(values, times["off"], strict=True)],
        }
        for state, values in times.items()
    }
    print(json.dumps({"wakeups_a_second": round(1e9 / base), "states": result}, indent=2))


if __name__ == "__main__":
    main()
