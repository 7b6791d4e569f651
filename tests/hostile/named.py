"""A process whose threads are called what its arguments say (hexadecimal). Run as a program.

Each thread burns and sleeps; the main one keeps its name. Says "ready" when all have theirs.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time

PR_SET_NAME = 15
_libc = ctypes.CDLL(None)


def live(name: bytes, named: threading.Barrier) -> None:
    _libc.prctl(PR_SET_NAME, name, 0, 0, 0)
    named.wait()
    while True:
        until = time.monotonic() + 0.001
        while time.monotonic() < until:
            pass
        time.sleep(0.02)


def main() -> None:
    names = [bytes.fromhex(word) for word in sys.argv[1:]]
    named = threading.Barrier(len(names) + 1)
    for name in names:
        threading.Thread(target=live, args=(name, named), daemon=True).start()
    named.wait()
    print("ready", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
