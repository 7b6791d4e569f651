"""A process whose threads come and go. Run as a program; ends with the process that started it.

Arguments: seed, and "family" (threads, short-lived threads, child processes) or "solo" (one thread).
Waits for a line on stdin before it starts anything, so that it can be put into its group first.
"""

from __future__ import annotations

import contextlib
import os
import random
import sys
import threading
import time

LASTING_THREADS = 3
BURN_S = 0.0005


def burn_and_sleep(chance: random.Random) -> None:
    until = time.monotonic() + BURN_S
    while time.monotonic() < until:
        pass
    time.sleep(chance.uniform(0.005, 0.06))


def live(seed: int, seconds: float) -> None:
    chance = random.Random(seed)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        burn_and_sleep(chance)


def start(seed: int, seconds: float) -> None:
    threading.Thread(target=live, args=(seed, seconds), daemon=True).start()


def family(chance: random.Random) -> None:
    """Something new to be born every few milliseconds: a thread, at times a process."""
    if threading.active_count() < 10 and chance.random() < 0.5:
        start(chance.randrange(1 << 30), chance.uniform(0.0, 2.5))
    if chance.random() < 0.02:
        os.posix_spawn("/bin/sleep", ["sleep", f"{chance.uniform(0.1, 8.0)}"], {})
    with contextlib.suppress(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def main() -> None:
    seed, kind = int(sys.argv[1]), sys.argv[2]
    chance = random.Random(seed)
    parent = os.getppid()
    sys.stdin.readline()
    if kind == "family":
        for number in range(LASTING_THREADS):
            start(seed + number, 1e9)
    while os.getppid() == parent:
        burn_and_sleep(chance)
        if kind == "family":
            family(chance)


if __name__ == "__main__":
    main()
